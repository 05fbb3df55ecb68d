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

/** Where a run's numbers go. Records come in the order of their steps; a call may begin before the last one settled. */
export interface Tracker {
  readonly name: string;
  log(record: MetricsRecord): void | Promise<void>;
  episodes?(record: EpisodesRecord): void | Promise<void>;
  /** A message for people. */
  text?(message: string): void | Promise<void>;
  /** Makes everything logged so far durable; what continuing from here needs, as JSON, goes into the checkpoint. */
  cursor?(): unknown;
  /** Waits until everything is written; nothing is logged afterwards. */
  close(): void | Promise<void>;
}

export interface TrackerFailure {
  readonly tracker: string;
  readonly error: unknown;
  /** How often this tracker has failed so far, this time included. */
  readonly count: number;
}

/** Several trackers as one. Each gets every call; the failure of one is reported and counted and stops nothing. */
export interface FanOut extends Required<Omit<Tracker, 'cursor'>> {
  /** The cursors of the trackers that have one, by name. */
  cursors(): Promise<Record<string, unknown>>;
  /** Tracker name → failures so far. */
  readonly failures: ReadonlyMap<string, number>;
}

export function fanOut(trackers: readonly Tracker[], onError: (failure: TrackerFailure) => void): FanOut {
  const failures = new Map<string, number>();
  const each = async (call: (tracker: Tracker) => void | Promise<void>) => {
    await Promise.all(
      trackers.map(async tracker => {
        try {
          await call(tracker);
        } catch (error) {
          const count = (failures.get(tracker.name) ?? 0) + 1;
          failures.set(tracker.name, count);
          onError({ tracker: tracker.name, error, count });
        }
      }),
    );
  };
  return {
    name: trackers.map(({ name }) => name).join('+'),
    failures,
    log: record => each(tracker => tracker.log(record)),
    episodes: record => each(tracker => tracker.episodes?.(record)),
    text: message => each(tracker => tracker.text?.(message)),
    cursors: async () => {
      const cursors: Record<string, unknown> = {};
      await each(async tracker => {
        const cursor = await tracker.cursor?.();
        if (cursor !== undefined) cursors[tracker.name] = cursor;
      });
      return cursors;
    },
    close: () => each(tracker => tracker.close()),
  };
}
