import type { Learner } from '../engines/contracts.ts';
import type { Episode } from '../episode/episode.ts';
import type { EpisodeGroup } from './groups.ts';
import type { Cursor } from './order.ts';

/** The episodes that one step of training consumes. */
export interface RolloutBatch {
  /** Groups to train on: no failed episodes in them. */
  readonly groups: readonly EpisodeGroup[];
  /** Everything that was sampled for the batch, failed episodes too, in order. */
  readonly episodes: readonly Episode[];
  /** Flat names as they are logged (`rollout/reward_mean`, `timing/generation`, …). */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Where batches come from. The pipeline decides when sampling and learning overlap (sync, async, partial); the loop
 * that consumes it does not know which one it is. Iteration has no end: whoever consumes it counts the steps.
 */
export interface Pipeline extends AsyncIterable<RolloutBatch> {
  /** New weights reach the sampler. */
  publish(learner: Learner): Promise<void>;
  /** All that is needed to continue after the batch that was given last: where the data stands, */
  readonly cursor: Cursor;
  /** and groups that were sampled and accepted for a batch that is still to come. */
  readonly waiting: readonly EpisodeGroup[];
  seek(cursor: Cursor, waiting?: readonly EpisodeGroup[]): void;
}
