import { messageOf } from '../../episode/failure.ts';
import type { ResourcePool, ResourceSpec } from '../tools/contracts.ts';

export interface PoolOptions {
  /** Resources alive at once, ≥ 1; more holders wait. */
  readonly max?: number;
  /** 'episode' destroys a resource when its holder is done; 'shared' resets it and hands it to the next. */
  readonly scope?: 'episode' | 'shared';
}

interface Held<R> {
  readonly ready: Promise<R>;
  /** Set once `ready` has resolved. */
  resource?: R;
}

/**
 * A pool of resources. Asking is AgentFly's algorithm (its resource engine): a holder that has one, or is being given
 * one, gets that; else a free one; else a new one while fewer than `max` are alive, made outside of the queue so that
 * slow starts overlap; else it waits for its turn.
 */
export function resourcePool<R>(spec: ResourceSpec<R>, options: PoolOptions = {}): WarmPool<R> {
  return new WarmPool(spec, options);
}

export class WarmPool<R> implements ResourcePool<R> {
  readonly name: string;
  readonly #spec: ResourceSpec<R>;
  readonly #max: number;
  readonly #shared: boolean;
  readonly #held = new Map<string, Held<R>>();
  readonly #free: R[] = [];
  readonly #queue: (() => void)[] = [];
  readonly #closing = new AbortController();
  /** Held, free, being made or being given back. */
  #alive = 0;

  constructor(spec: ResourceSpec<R>, { max = Infinity, scope = 'episode' }: PoolOptions = {}) {
    if (!(max >= 1)) throw new RangeError(`pool ${spec.name}: max is ${max}; expected 1 or more`);
    if (scope === 'shared' && spec.reset === undefined) {
      throw new Error(`pool ${spec.name}: a shared resource needs reset, or one episode would see what another left`);
    }
    this.name = spec.name;
    this.#spec = spec;
    this.#max = max;
    this.#shared = scope === 'shared';
  }

  get alive(): number {
    return this.#alive;
  }

  /** Makes resources ahead of the first call, as many as `max` allows. Rejects when one cannot be made. */
  async warm(count: number): Promise<void> {
    const missing = Math.min(count - this.#free.length, this.#max - this.#alive);
    const made = Array.from({ length: Math.max(0, missing) }, async () => {
      this.#free.push(await this.#create(this.#closing.signal));
      this.#next();
    });
    await Promise.all(made);
  }

  acquire(holder: string, signal: AbortSignal): Promise<R> {
    const known = this.#held.get(holder);
    if (known !== undefined) return known.ready;
    const held: Held<R> = { ready: this.#obtain(signal) };
    this.#held.set(holder, held);
    held.ready.then(
      resource => {
        held.resource = resource;
      },
      // The caller is told by the promise it has; the place is given up so that it may ask again.
      () => this.#held.delete(holder),
    );
    return held.ready;
  }

  held(holder: string): R | undefined {
    return this.#held.get(holder)?.resource;
  }

  async release(holder: string): Promise<void> {
    const held = this.#held.get(holder);
    if (held === undefined) return;
    this.#held.delete(holder);
    const made = await held.ready.then(
      resource => ({ resource }),
      () => undefined,
    );
    if (made === undefined) return;
    if (!this.#shared || this.#closing.signal.aborted) return this.#destroy(made.resource);
    try {
      await this.#spec.reset!(made.resource);
    } catch (error) {
      await this.#destroy(made.resource);
      throw new Error(`pool ${this.name}: a resource could not be reset and was replaced: ${messageOf(error)}`, {
        cause: error,
      });
    }
    this.#free.push(made.resource);
    this.#next();
  }

  /** Destroys everything; those who wait are refused. */
  async close(): Promise<void> {
    this.#closing.abort(new Error(`pool ${this.name} is closed`));
    for (const wake of this.#queue.splice(0)) wake();
    const held = [...this.#held.keys()].map(holder => this.release(holder));
    const free = this.#free.splice(0).map(resource => this.#destroy(resource));
    await Promise.all([...held, ...free]);
  }

  async #obtain(signal: AbortSignal): Promise<R> {
    for (;;) {
      this.#closing.signal.throwIfAborted();
      if (signal.aborted) this.#next(); // the turn it may have been given goes to someone else
      signal.throwIfAborted();
      const free = this.#free.pop();
      if (free !== undefined) {
        if (await this.#isHealthy(free)) return free;
        await this.#destroy(free);
      } else if (this.#alive < this.#max) {
        return this.#create(signal);
      } else {
        await this.#turn(signal);
      }
    }
  }

  async #create(signal: AbortSignal): Promise<R> {
    this.#alive += 1;
    try {
      return await this.#spec.create(signal);
    } catch (error) {
      this.#alive -= 1;
      this.#next();
      throw error;
    }
  }

  async #isHealthy(resource: R): Promise<boolean> {
    try {
      return (await this.#spec.healthy?.(resource)) ?? true;
    } catch {
      return false; // a check that fails says the same as one that answers no: the resource is replaced
    }
  }

  async #destroy(resource: R): Promise<void> {
    try {
      await this.#spec.destroy?.(resource);
    } finally {
      this.#alive -= 1;
      this.#next();
    }
  }

  /** Waits for a free place. One that gives up hands its turn on. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#queue.splice(this.#queue.indexOf(wake), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#queue.push(wake);
    });
  }

  #next(): void {
    this.#queue.shift()?.();
  }
}
