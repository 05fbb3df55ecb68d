/** A queue between two tasks of one process: `put` waits for room, `get` for something to be there. */
export class AsyncQueue<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  readonly #getters: { resolve(item: T): void; reject(error: unknown): void }[] = [];
  readonly #putters: { item: T; resolve(): void; reject(error: unknown): void }[] = [];
  #closed: { readonly reason: unknown } | undefined;

  constructor(capacity = 1024) {
    this.#capacity = capacity;
  }

  async put(item: T): Promise<void> {
    if (this.#closed) throw this.#closed.reason;
    const getter = this.#getters.shift();
    if (getter) return getter.resolve(item);
    if (this.#items.length < this.#capacity) {
      this.#items.push(item);
      return;
    }
    return new Promise((resolve, reject) => this.#putters.push({ item, resolve, reject }));
  }

  async get(): Promise<T> {
    if (this.#items.length > 0) {
      const item = this.#items.shift()!;
      const putter = this.#putters.shift();
      if (putter) {
        this.#items.push(putter.item);
        putter.resolve();
      }
      return item;
    }
    if (this.#closed) throw this.#closed.reason;
    return new Promise((resolve, reject) => this.#getters.push({ resolve, reject }));
  }

  /** Whoever waits, and whoever comes later, gets the reason; what is in the queue can still be taken. */
  close(reason: unknown): void {
    this.#closed ??= { reason };
    for (const waiting of [...this.#getters.splice(0), ...this.#putters.splice(0)]) waiting.reject(reason);
  }
}
