/** Who waits for whom: measures, from batch to batch, when sampler and trainer had nothing to do. */
export class Activity {
  readonly #now: () => number;
  #lastGiven: number;
  #waitingSince: number;
  /** Since when nothing is under way. */
  #emptySince: number | undefined;
  #empty = 0;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#lastGiven = now();
    this.#waitingSince = this.#lastGiven;
    this.#emptySince = this.#lastGiven;
  }

  /** So many groups are under way from now on. */
  running(count: number): void {
    if (count === 0) {
      this.#emptySince ??= this.#now();
    } else if (this.#emptySince !== undefined) {
      this.#empty += this.#now() - Math.max(this.#emptySince, this.#lastGiven);
      this.#emptySince = undefined;
    }
  }

  /** The trainer asks for a batch. */
  waiting(): void {
    this.#waitingSince = this.#now();
  }

  /** The trainer has its batch: seconds since the one before, and the shares of them in which each side was idle. */
  given(): {
    readonly seconds: number;
    readonly 'timing/generator_idle': number;
    readonly 'timing/trainer_idle': number;
  } {
    const now = this.#now();
    if (this.#emptySince !== undefined) this.#empty += now - Math.max(this.#emptySince, this.#lastGiven);
    const all = now - this.#lastGiven;
    const share = (part: number) => (all > 0 ? part / all : 0);
    const shares = {
      seconds: all / 1000,
      'timing/generator_idle': share(this.#empty),
      'timing/trainer_idle': share(now - this.#waitingSince),
    };
    [this.#lastGiven, this.#empty] = [now, 0];
    return shares;
  }
}
