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
export async function boundary<T>(...call: Parameters<typeof boundaryAtOnce<T>>): Promise<T> {
  return await boundaryAtOnce(...call);
}

/**
 * The same; what the call gives or throws without waiting is given or thrown at once. Where thousands of episodes move
 * together, what waits for one more microtask of each outlives the young generation of the heap.
 */
export function boundaryAtOnce<T>(
  failureClass: FailureClass,
  what: string,
  call: () => T | PromiseLike<T>,
  options: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined } = {},
): T | Promise<T> {
  const { signal, timeoutMs } = options;
  signal?.throwIfAborted();
  const attributed = (error: unknown): unknown => {
    if (error instanceof EpisodeError) return error;
    if (signal?.aborted) return signal.reason;
    return new EpisodeError(failureClass, `${what}: ${messageOf(error)}`, { cause: error });
  };
  try {
    const given = call();
    return isThenable(given) ? withDeadline(given, attributed, what, signal, timeoutMs) : given;
  } catch (error) {
    throw attributed(error);
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

/** What is given in the end, unless the signal or the deadline comes first. */
function withDeadline<T>(
  given: PromiseLike<T>,
  attributed: (error: unknown) => unknown,
  what: string,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
): Promise<T> {
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
    Promise.resolve(given).then(
      value => {
        settle();
        resolve(value);
      },
      error => {
        settle();
        reject(attributed(error));
      },
    );
    // The call itself may have ended the episode.
    if (signal?.aborted) onAbort();
  });
}
