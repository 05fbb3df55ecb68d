/**
 * Failures that belong to one episode. A failed episode is data: it is stored and counted, never trained on as
 * reward 0. The class says whose side failed; `boundary` puts it on at the one place where that side is called.
 */

export const FAILURE_CLASSES = [
  'provider', // the sampler or the service behind it
  'environment', // reset, step or close threw or returned something unusable
  'reward', // the reward function threw or returned something that is not a finite number
  'tool', // a tool failed in a way that is not an answer to the model
  'timeout', // a deadline passed
  'overflow', // a prompt that does not fit the window
  'recorder', // the recorded conversation could not be matched or tokenised
] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** An error attributed to one side of an episode. `cause` keeps the original. */
export class EpisodeError extends Error {
  override readonly name = 'EpisodeError';
  readonly failureClass: FailureClass;

  constructor(failureClass: FailureClass, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.failureClass = failureClass;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Runs `call`, which belongs to the side named by `failureClass`, and attributes whatever it throws.
 * An error that is already attributed, and an abort that the caller asked for, pass through unchanged.
 */
export async function boundary<T>(
  failureClass: FailureClass,
  what: string,
  call: () => T | PromiseLike<T>,
  options: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined } = {},
): Promise<T> {
  const { signal, timeoutMs } = options;
  signal?.throwIfAborted();
  try {
    return await withDeadline(call, what, signal, timeoutMs);
  } catch (error) {
    if (error instanceof EpisodeError) throw error;
    if (signal?.aborted) throw signal.reason;
    throw new EpisodeError(failureClass, `${what}: ${messageOf(error)}`, { cause: error });
  }
}

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

const WAITING = new WeakMap<AbortSignal, Set<() => void>>();

/** What happens when the signal aborts. One listener for all of it: a listener costs more than most calls. */
function waitingOn(signal: AbortSignal): Set<() => void> {
  const known = WAITING.get(signal);
  if (known !== undefined) return known;
  const waiting = new Set<() => void>();
  WAITING.set(signal, waiting);
  const interruptAll = () => {
    for (const interrupt of waiting) interrupt();
  };
  signal.addEventListener('abort', interruptAll, { once: true });
  return waiting;
}

/** What the call gives, unless the signal or the deadline comes first. One that gives it at once is never interrupted. */
function withDeadline<T>(
  call: () => T | PromiseLike<T>,
  what: string,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
): T | PromiseLike<T> {
  const given = call();
  if (!isThenable(given) || (signal === undefined && timeoutMs === undefined)) return given;
  return new Promise<T>((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer);
      interruptible?.delete(onAbort);
    };
    const onAbort = () => {
      settle();
      reject(signal?.reason);
    };
    const onTimeout = () => {
      settle();
      reject(new EpisodeError('timeout', `${what}: no answer within ${timeoutMs} ms; raise the deadline or mend it`));
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);
    const interruptible = signal && waitingOn(signal).add(onAbort);
    given.then(
      value => {
        settle();
        resolve(value);
      },
      error => {
        settle();
        reject(error);
      },
    );
    // The call itself may have ended the episode.
    if (signal?.aborted) onAbort();
  });
}
