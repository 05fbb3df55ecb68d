/** A clock that stands still while anything can happen, and then jumps to the next thing that was waited for. */
export class VirtualClock {
  /** Milliseconds. */
  now = 0;
  /** A heap by time, then by the order of asking. */
  readonly #heap: { readonly at: number; readonly order: number; readonly wake: () => void }[] = [];
  #asked = 0;

  sleep(milliseconds: number): Promise<void> {
    return new Promise(wake => {
      this.#heap.push({ at: this.now + Math.max(0, milliseconds), order: this.#asked++, wake });
      this.#rise(this.#heap.length - 1);
    });
  }

  /** Runs until `job` has ended; throws when nothing is waited for any more and it has not. */
  async run<T>(job: Promise<T>): Promise<T> {
    let over = false;
    const ended = job.finally(() => {
      over = true;
    });
    // Its error is the caller's.
    ended.catch(() => undefined);
    for (;;) {
      // Whatever follows from what has happened so far happens before this comes back.
      await new Promise(resolve => setImmediate(resolve));
      if (over) return ended;
      const first = this.#pop();
      if (first === undefined) throw new Error('nothing can happen any more, and the job has not ended');
      this.now = first.at;
      first.wake();
    }
  }

  #before(a: number, b: number): boolean {
    const [x, y] = [this.#heap[a]!, this.#heap[b]!];
    return x.at < y.at || (x.at === y.at && x.order < y.order);
  }

  #swap(a: number, b: number): void {
    [this.#heap[a], this.#heap[b]] = [this.#heap[b]!, this.#heap[a]!];
  }

  #rise(index: number): void {
    for (let i = index, parent = (i - 1) >> 1; i > 0 && this.#before(i, parent); i = parent, parent = (i - 1) >> 1) {
      this.#swap(i, parent);
    }
  }

  #pop() {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (this.#heap.length > 0) {
      this.#heap[0] = last!;
      for (let i = 0; ; ) {
        let least = i;
        for (const child of [2 * i + 1, 2 * i + 2]) {
          if (child < this.#heap.length && this.#before(child, least)) least = child;
        }
        if (least === i) break;
        this.#swap(i, least);
        i = least;
      }
    }
    return first;
  }
}
