import { messageOf } from '../episode/failure.ts';
import type { RunEnd, Tracker } from './contracts.ts';
import { TrackerError } from './tracker-error.ts';

/** Several trackers as one. Each gets every call; the failure of one is reported and counted and stops nothing. */
export interface FanOut extends Required<Omit<Tracker, 'cursor'>> {
  /** The cursors of the trackers that have one, by name. */
  cursors(): Promise<Record<string, unknown>>;
  /** Tracker name → failures so far. */
  readonly failures: ReadonlyMap<string, number>;
}

export interface FanOutOptions {
  /** Told about the first failure of each tracker, and about one at the end of the run. */
  readonly report: (message: string) => void;
  /** A tracker that takes longer for one call gets no other call; 60 s when not given. */
  readonly deadlineMs?: number | undefined;
}

const TOO_SLOW = Symbol('too slow');

export function fanOut(trackers: readonly Tracker[], { report, deadlineMs = 60_000 }: FanOutOptions): FanOut {
  const failures = new Map<string, number>();
  const given = new Set<Tracker>();
  const failed = ({ name }: Tracker, lost: string, why: string, ending: boolean) => {
    const count = (failures.get(name) ?? 0) + 1;
    failures.set(name, count);
    if (count === 1 || ending) {
      const often = count > 1 ? `, after ${count - 1} earlier failures` : '';
      report(`tracker ${name}: ${why}${often}; ${lost}; the run goes on`);
    }
  };
  const each = async (what: string, call: (tracker: Tracker) => unknown, ending = false) => {
    await Promise.all(
      trackers.map(async tracker => {
        if (given.has(tracker)) return;
        try {
          if ((await within(deadlineMs, () => call(tracker))) !== TOO_SLOW) return;
          given.add(tracker);
          const why = `it did not answer within ${deadlineMs / 1000} s`;
          failed(tracker, `${what} and all that follows is lost there`, why, ending);
        } catch (error) {
          const lost = error instanceof TrackerError ? error.lost : `${what} is lost there`;
          failed(tracker, lost, messageOf(error), ending);
        }
      }),
    );
  };
  return {
    name: trackers.map(({ name }) => name).join('+'),
    failures,
    log: record => each(`what was logged at step ${record.step}`, tracker => tracker.log(record)),
    episodes: record => each(`an episode of step ${record.step}`, tracker => tracker.episodes?.(record)),
    text: message => each('a message', tracker => tracker.text?.(message)),
    cursors: async () => {
      const cursors: Record<string, unknown> = {};
      await each('the place to continue from', async tracker => {
        const cursor = await tracker.cursor?.();
        if (cursor !== undefined) cursors[tracker.name] = cursor;
      });
      return cursors;
    },
    close: (end: RunEnd = 'finished') => each('the end of the run', tracker => tracker.close(end), true),
  };
}

async function within<T>(ms: number, call: () => T | PromiseLike<T>): Promise<T | typeof TOO_SLOW> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof TOO_SLOW>(resolve => {
    timer = setTimeout(() => resolve(TOO_SLOW), ms);
  });
  try {
    return await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
  }
}
