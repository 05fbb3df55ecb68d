import { setTimeout as after } from 'node:timers/promises';
import { messageOf } from '../episode/failure.ts';
import { RefusedError } from './http.ts';
import { TrackerError } from './tracker-error.ts';

export interface Stamped {
  readonly step: number;
}

export interface OutboxOptions<T extends Stamped> {
  /**
   * Delivers items, in order. It rejects when none of them arrived, or when it does no harm that some arrive again; a
   * RefusedError ends all delivery.
   */
  readonly send: (items: readonly T[], signal: AbortSignal) => Promise<void>;
  /** Items that may wait; 10 000 when not given. The oldest wait longest: further ones are dropped. */
  readonly capacity?: number | undefined;
  /** Most items of one delivery; 200 when not given. */
  readonly batch?: number | undefined;
  /** Longest time that `close` waits for what is left; 20 s when not given. */
  readonly closeMs?: number | undefined;
  /** Waits between two attempts: 1 s, doubled with every failure in a row, up to 60 s. */
  readonly wait?: ((ms: number, signal: AbortSignal) => Promise<unknown>) | undefined;
}

/** Failures in a row after which the user is told. */
const PATIENCE = 5;

/**
 * Items on their way over a network. `push` never waits: delivery happens in the background, in order, and is repeated
 * until it succeeds or is refused. What went wrong is thrown by the next `push` and by `close`.
 */
export class Outbox<T extends Stamped> {
  readonly #options: OutboxOptions<T>;
  readonly #waiting: T[] = [];
  readonly #closing = new AbortController();
  readonly #stop = new AbortController();
  readonly #lost = { count: 0, first: Number.NaN, last: Number.NaN };
  #running: Promise<void> | undefined;
  #news: string | undefined;
  #refused: string | undefined;
  #trouble = '';

  constructor(options: OutboxOptions<T>) {
    this.#options = options;
  }

  /** Nothing waits and nothing is under way. */
  get idle(): boolean {
    return this.#running === undefined && this.#refused === undefined;
  }

  /** @throws TrackerError what went wrong since the last call; the item is taken nevertheless, where that is possible */
  push(item: T): void {
    const { capacity = 10_000 } = this.#options;
    if (this.#refused !== undefined) {
      this.#lose([item]);
    } else if (this.#waiting.length >= capacity) {
      this.#news ??= `${capacity} records wait for delivery, which is all that may (${this.#trouble})`;
      this.#lose([item]);
    } else {
      this.#waiting.push(item);
      this.#running ??= this.#deliver();
    }
    const news = this.#news;
    this.#news = undefined;
    if (news !== undefined) throw new TrackerError(news, this.#loss());
  }

  /** Goes on, for a limited time, to deliver what is left. */
  async close(): Promise<void> {
    const { closeMs = 20_000 } = this.#options;
    this.#closing.abort();
    const deadline = setTimeout(() => this.#stop.abort(new Error(`not delivered within ${closeMs / 1000} s`)), closeMs);
    try {
      await this.#running;
    } finally {
      clearTimeout(deadline);
    }
    this.#lose(this.#waiting.splice(0));
    if (this.#lost.count > 0) throw new TrackerError(this.#refused ?? this.#trouble, this.#loss());
  }

  async #deliver(): Promise<void> {
    const { send, batch = 200, wait = (ms, signal) => after(ms, undefined, { signal, ref: false }) } = this.#options;
    const { signal } = this.#stop;
    let failures = 0;
    // What is pushed in one go leaves together.
    await undefined;
    while (this.#waiting.length > 0 && !signal.aborted) {
      const items = this.#waiting.slice(0, batch);
      try {
        await send(items, signal);
        this.#waiting.splice(0, items.length);
        failures = 0;
      } catch (error) {
        this.#trouble = messageOf(error);
        if (error instanceof RefusedError) {
          this.#refused = this.#trouble;
          this.#news = this.#trouble;
          this.#lose(this.#waiting.splice(0));
          break;
        }
        failures += 1;
        if (failures === PATIENCE) this.#news = `${this.#trouble} (${failures} attempts; they go on in the background)`;
        if (signal.aborted) break;
        // The end of the run cuts a pause short; from then on they are short, until the deadline.
        const ending = this.#closing.signal.aborted;
        const pause = ending ? 1000 : Math.min(60_000, 1000 * 2 ** (failures - 1));
        await wait(pause, ending ? signal : this.#closing.signal).catch(() => undefined);
      }
    }
    this.#running = undefined;
  }

  #lose(items: readonly T[]): void {
    const [first, last] = [items[0], items.at(-1)];
    if (first === undefined || last === undefined) return;
    if (this.#lost.count === 0) this.#lost.first = first.step;
    this.#lost.count += items.length;
    this.#lost.last = last.step;
  }

  #loss(): string {
    const { count, first, last } = this.#lost;
    if (this.#refused !== undefined && !this.#closing.signal.aborted)
      return `nothing from step ${first} on arrives there`;
    if (count === 0) return 'nothing is lost yet';
    return `${count} records of steps ${first} to ${last} are lost there`;
  }
}
