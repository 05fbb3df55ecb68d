interface UnderWay<T> {
  readonly answer: Promise<T>;
  readonly stop: AbortController;
  waiting: number;
}

/**
 * Answers by question. What was asked lately (least recently used ones are forgotten first) is not asked again, nor what
 * is being asked: whoever comes later waits for the same answer. Failures are not kept.
 */
export class AskedOnce<T> {
  readonly #size: number;
  readonly #known = new Map<string, T>();
  readonly #underWay = new Map<string, UnderWay<T>>();

  /** @param size answers kept at most; at 0 every question is asked */
  constructor(size: number) {
    this.#size = size;
  }

  /**
   * @param ask gets a signal that aborts when nobody waits for the answer any more
   * @throws the signal's reason as soon as it aborts; what `ask` throws
   */
  async get(
    question: string,
    ask: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<{ readonly value: T; readonly cached: boolean }> {
    signal.throwIfAborted();
    if (this.#size === 0) return { value: await unlessAborted(ask(signal), signal), cached: false };
    if (this.#known.has(question)) {
      const value = this.#known.get(question) as T;
      this.#keep(question, value);
      return { value, cached: true };
    }
    const joined = this.#underWay.get(question);
    const asking = joined ?? this.#begin(question, ask);
    asking.waiting += 1;
    try {
      return { value: await unlessAborted(asking.answer, signal), cached: joined !== undefined };
    } finally {
      asking.waiting -= 1;
      if (asking.waiting === 0) {
        asking.stop.abort();
        this.#forget(question, asking);
      }
    }
  }

  #begin(question: string, ask: (signal: AbortSignal) => Promise<T>): UnderWay<T> {
    const stop = new AbortController();
    const answer = ask(stop.signal).then(value => {
      this.#keep(question, value);
      return value;
    });
    const asking = { answer, stop, waiting: 0 };
    this.#underWay.set(question, asking);
    return asking;
  }

  /** As the one used last. */
  #keep(question: string, value: T): void {
    this.#known.delete(question);
    this.#known.set(question, value);
    const [oldest] = this.#known.keys();
    if (this.#known.size > this.#size) this.#known.delete(oldest!);
  }

  /** Another one may have begun with the same question. */
  #forget(question: string, asking: UnderWay<T>): void {
    if (this.#underWay.get(question) === asking) this.#underWay.delete(question);
  }
}

function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const settled = () => signal.removeEventListener('abort', stop);
    answer.then(resolve, reject).then(settled, settled);
  });
}
