import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { preview } from '../../../episode/explain.ts';
import { Tail } from '../tail.ts';

const answer = z.union([
  z.object({ id: z.int(), ok: z.record(z.string(), z.unknown()) }),
  z.object({ id: z.int().nullable(), error: z.string() }),
]);

interface Waiting {
  readonly resolve: (value: Readonly<Record<string, unknown>>) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A process that answers JSON lines in their order (python/gem_bridge.py). It keeps this process alive only while an
 * answer is awaited, and ends when its stdin does.
 */
export class BridgeProcess {
  readonly #name: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #stderr = new Tail();
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  /** Why it can no longer be asked. */
  #ended: Error | undefined;

  constructor(command: string, args: readonly string[]) {
    this.#name = `bridge ${[command, ...args].join(' ')}`;
    this.#child = spawn(command, args, { stdio: 'pipe' });
    this.#stderr.follow(this.#child.stderr);
    createInterface({ input: this.#child.stdout, crlfDelay: Infinity }).on('line', line => this.#read(line));
    this.#child.stdin.on('error', error => this.#end(`it cannot be written to: ${error.message}`));
    this.#child.on('error', error => this.#end(`it cannot be started: ${error.message}`));
    // 'close' comes after all of its output was read.
    this.#child.on('close', (code, signal) => this.#end(`it ended (${code === null ? signal : `exit code ${code}`})`));
    this.#hold(false);
  }

  get isAlive(): boolean {
    return this.#ended === undefined;
  }

  /** Asks and awaits the answer. When `signal` aborts what it is working on, it is ended: it would answer nobody else. */
  ask(request: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        const [working] = this.#waiting.keys();
        // One that waits behind others is forgotten; its answer is read and dropped.
        if (working === id) this.#end('it gave no answer in time, and was ended');
        else reject(signal?.reason);
      };
      const settled = () => signal?.removeEventListener('abort', onAbort);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.set(id, {
        resolve: value => {
          settled();
          resolve(value);
        },
        reject: error => {
          settled();
          reject(error);
        },
      });
      this.#hold(true);
      this.#child.stdin.write(`${JSON.stringify({ id, ...request })}\n`);
    });
  }

  close(): void {
    this.#end('it was closed');
  }

  #read(line: string): void {
    let given: z.output<typeof answer>;
    try {
      given = answer.parse(JSON.parse(line));
    } catch {
      this.#end(`it answered ${preview(line)}, and not {id, ok} or {id, error} as JSON`);
      return;
    }
    const [id] = this.#waiting.keys();
    const waiting = this.#waiting.get(given.id ?? -1);
    if (waiting === undefined || given.id !== id) {
      this.#end(`it answered request ${given.id} where the answer to ${id ?? 'none'} was due`);
      return;
    }
    this.#waiting.delete(id!);
    if (this.#waiting.size === 0) this.#hold(false);
    if ('ok' in given) waiting.resolve(given.ok);
    else waiting.reject(new Error(given.error));
  }

  #end(why: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = new Error(`${this.#name}: ${why}${this.#stderr}`);
    this.#child.stdin.destroy();
    this.#child.kill('SIGKILL');
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
    this.#hold(false);
  }

  /** Whether it keeps this process alive. */
  #hold(holds: boolean): void {
    const { stdin, stdout, stderr } = this.#child as unknown as Record<'stdin' | 'stdout' | 'stderr', Socket>;
    for (const one of [this.#child, stdin, stdout, stderr]) {
      if (holds) one.ref();
      else one.unref();
    }
  }
}
