import type { Learner } from '../engines/contracts.ts';
import type { Episode } from '../episode/episode.ts';
import type { EpisodeGroup } from './groups.ts';
import type { Cursor, Started } from './order.ts';

/** The episodes that one step of training consumes. */
export interface RolloutBatch {
  /** Groups to train on: no failed episodes in them. */
  readonly groups: readonly EpisodeGroup[];
  /** Everything that was sampled for the batch, failed episodes too, in order. */
  readonly episodes: readonly Episode[];
  /** Flat names as they are logged (`rollout/reward_mean`, `timing/generation`, …). */
  readonly metrics: Readonly<Record<string, number>>;
}

/** What a pipeline holds between two batches, beside the place in the data. A checkpoint keeps it (groups-file.ts). */
export interface Backlog {
  /** Sampled for a batch that is still to come, oldest first. */
  readonly waiting: readonly EpisodeGroup[];
  /** Under way: they are begun anew when a run is resumed, before any other task. */
  readonly started: readonly Started[];
  /** Versions of the weights that were served, oldest first: steps of staleness are counted in them. */
  readonly published: readonly number[];
}

export const NO_BACKLOG: Backlog = { waiting: [], started: [], published: [] };

/**
 * Where batches come from. The pipeline decides when sampling and learning overlap (sync, async, partial); the loop
 * that consumes it does not know which one it is. Iteration has no end: whoever consumes it counts the steps.
 */
export interface Pipeline extends AsyncIterable<RolloutBatch> {
  /** New weights reach the sampler. */
  publish(learner: Learner): Promise<void>;
  /** With the backlog, all that is needed to continue after the batch that was given last: where the data stands. */
  readonly cursor: Cursor;
  readonly backlog: Backlog;
  seek(cursor: Cursor, backlog?: Backlog): void;
}
