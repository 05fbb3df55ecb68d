import type { Episode } from '../episode/episode.ts';

/** Values of one step; names are slash-separated (`train/policy_loss`, `rollout/reward_mean`). */
export interface MetricsRecord {
  /** Steps of training done when it was taken; 0 is before the first. */
  readonly step: number;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface EpisodesRecord {
  readonly step: number;
  readonly phase: 'train' | 'eval';
  readonly episodes: readonly Episode[];
}

/** How a run ended. One that was interrupted can be continued. */
export type RunEnd = 'finished' | 'interrupted' | 'failed';

/**
 * Where a run's numbers go. Records come in the order of their steps; a call may begin before the last one settled.
 * What a call throws is reported and stops nothing (fan-out.ts). A tracker that sends over a network answers at once
 * and throws at a later call what went wrong since.
 */
export interface Tracker {
  readonly name: string;
  log(record: MetricsRecord): void | Promise<void>;
  episodes?(record: EpisodesRecord): void | Promise<void>;
  /** A message for people. */
  text?(message: string): void | Promise<void>;
  /** Makes everything logged so far durable; what continuing from here needs, as JSON, goes into the checkpoint. */
  cursor?(): unknown;
  /** Waits until everything is written; nothing is logged afterwards. `finished` when not given. */
  close(end?: RunEnd): void | Promise<void>;
}
