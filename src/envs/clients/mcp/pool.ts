import { resourcePool } from '../../resources/pool.ts';
import type { ResourcePool } from '../../tools/contracts.ts';
import type { McpServer } from './config.ts';
import type { McpConnection } from './connection.ts';

type Open = (signal: AbortSignal) => Promise<McpConnection>;

/** Connections to one server: one for all episodes, or one for each. */
export function connectionPool(name: string, { scope, max }: McpServer, open: Open): ResourcePool<McpConnection> {
  if (scope === 'shared') return new SharedConnection(name, open);
  return resourcePool<McpConnection>({ name, create: open, destroy: connection => connection.close() }, { max });
}

/** One connection that every episode calls at the same time. One that has ended is replaced at the next call. */
class SharedConnection implements ResourcePool<McpConnection> {
  readonly name: string;
  readonly #open: Open;
  readonly #closing = new AbortController();
  #opening: Promise<McpConnection> | undefined;
  #current: McpConnection | undefined;

  constructor(name: string, open: Open) {
    this.name = name;
    this.#open = open;
  }

  acquire(): Promise<McpConnection> {
    if (this.#current?.isOpen) return Promise.resolve(this.#current);
    // The signal of one episode must not end what others wait for.
    this.#opening ??= this.#replace().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  held(): McpConnection | undefined {
    return this.#current?.isOpen ? this.#current : undefined;
  }

  release(): Promise<void> {
    return Promise.resolve(); // it stays for the others
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error(`pool ${this.name} is closed`));
    await this.#opening?.catch(() => undefined); // who waits for it is told
    await this.#current?.close();
  }

  async #replace(): Promise<McpConnection> {
    this.#closing.signal.throwIfAborted();
    await this.#current?.close();
    this.#current = await this.#open(this.#closing.signal);
    return this.#current;
  }
}
