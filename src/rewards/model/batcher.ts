export interface BatchLimits {
  /** Items computed together at most. */
  readonly maxBatch: number;
  /** How long an item waits for company at most, in milliseconds, while nothing is being computed. */
  readonly maxWaitMs: number;
  /** Items that may wait; who brings one more is refused. */
  readonly maxQueue: number;
  /** Batches computed at the same time; 1 when not given. */
  readonly concurrency?: number | undefined;
}

/** The queue is full. */
export class QueueFullError extends Error {}

interface Waiting<I, O> {
  readonly item: I;
  readonly resolve: (result: O) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Brings items of different callers together into batches, in the order in which they came. While a batch is computed
 * the next one grows, so that under load nobody waits for company; a batch that fails fails its own items.
 */
export class Batcher<I, O> {
  readonly #compute: (items: readonly I[]) => Promise<readonly O[]>;
  readonly #limits: BatchLimits;
  #waiting: Waiting<I, O>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running = 0;
  #batches = 0;
  #items = 0;

  constructor(compute: (items: readonly I[]) => Promise<readonly O[]>, limits: BatchLimits) {
    const { maxBatch, maxWaitMs, maxQueue, concurrency = 1 } = limits;
    for (const [name, value] of Object.entries({ maxBatch, maxQueue, concurrency })) {
      if (!(Number.isInteger(value) && value >= 1)) throw new Error(`${name} must be a whole number ≥ 1, got ${value}`);
    }
    if (!(maxWaitMs >= 0)) throw new Error(`maxWaitMs must be ≥ 0, got ${maxWaitMs}`);
    this.#compute = compute;
    this.#limits = limits;
  }

  /** Batches computed so far, items in them, and items that wait. */
  get statistics(): { readonly batches: number; readonly items: number; readonly waiting: number } {
    return { batches: this.#batches, items: this.#items, waiting: this.#waiting.length };
  }

  /** Results in the order of the items. @throws QueueFullError */
  all(items: readonly I[]): Promise<O[]> {
    const { maxQueue, maxBatch } = this.#limits;
    // A single caller may bring more than the queue holds, if nobody else waits.
    if (this.#waiting.length > 0 && this.#waiting.length + items.length > maxQueue) {
      throw new QueueFullError(`${this.#waiting.length} items are waiting, and ${maxQueue} may; try again later`);
    }
    const results = items.map(
      item => new Promise<O>((resolve, reject) => this.#waiting.push({ item, resolve, reject })),
    );
    if (this.#waiting.length >= maxBatch) this.#start();
    else if (this.#waiting.length > 0 && !this.#isBusy) {
      this.#timer ??= setTimeout(() => this.#start(), this.#limits.maxWaitMs);
    }
    return Promise.all(results);
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (!this.#isBusy && this.#waiting.length > 0) {
      this.#running += 1;
      void this.#run(this.#waiting.splice(0, this.#limits.maxBatch)).then(() => {
        this.#running -= 1;
        this.#start();
      });
    }
  }

  get #isBusy(): boolean {
    return this.#running >= (this.#limits.concurrency ?? 1);
  }

  /** Never rejects. */
  async #run(batch: readonly Waiting<I, O>[]): Promise<void> {
    this.#batches += 1;
    this.#items += batch.length;
    try {
      const results = await this.#compute(batch.map(({ item }) => item));
      if (results.length !== batch.length) {
        throw new Error(`${batch.length} items were computed together, and ${results.length} results came back`);
      }
      for (const [i, { resolve }] of batch.entries()) resolve(results[i]!);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
