import type { Readable } from 'node:stream';
import type { Worker } from 'node:worker_threads';
import type { RewardFunction, RewardInput } from '../contracts.ts';
import { beside, startThread } from '../thread.ts';
import { loadRewardFile } from './load.ts';
import type { FromThread, SentInput, ToThread } from './protocol.ts';

type Scores = Awaited<ReturnType<RewardFunction>>;

export interface RewardThreadOptions {
  /** The user's file. */
  readonly path: string;
  /** Takes what the file prints, line by line; it goes nowhere when not given. */
  readonly print?: ((line: string) => void) | undefined;
  /** Entry of the thread; one that knows no package names when not given. */
  readonly entry?: URL | undefined;
  /** A call that is not begun after so long is given to another thread; 1000 ms when not given. */
  readonly stallMs?: number | undefined;
  /** A thread that does not say a word for so long, when asked, is ended; 1000 ms when not given. */
  readonly graceMs?: number | undefined;
}

/** Threads of one file, at most: those that stall included. */
const MAX_THREADS = 4;
const LOAD_MS = 60_000;

/**
 * The function of a reward file in a thread of its own, so that a slow one does not hold up anything else. Calls overlap as
 * they would here. A call ends when its signal aborts; where its thread then does not react (an endless loop), the thread
 * is ended and another takes over what else it had been given. Another thread is opened, too, while one does not get to
 * its calls: what a module keeps between calls is kept in each of them.
 * @throws Error for a file that cannot be loaded, as `loadRewardFile` says it
 */
export async function rewardThreads(
  options: RewardThreadOptions,
): Promise<RewardFunction & { readonly close: () => Promise<void> }> {
  const threads = new RewardThreads(options);
  await threads.open();
  const reward: RewardFunction = batch => threads.call(batch);
  return Object.assign(reward, { close: () => threads.close() });
}

interface Call {
  readonly id: number;
  readonly batch: readonly SentInput[];
  readonly settle: { resolve(scores: Scores): void; reject(error: unknown): void };
  thread: Thread;
  stalled: NodeJS.Timeout | undefined;
}

interface Thread {
  readonly worker: Worker;
  /** Its file is loaded. */
  ready: boolean;
  /** Questions that it has not answered, and the wait for the answers. */
  pings: number;
  silence: NodeJS.Timeout | undefined;
}

class RewardThreads {
  readonly #options: RewardThreadOptions;
  readonly #threads = new Set<Thread>();
  readonly #calls = new Map<number, Call>();
  #ids = 0;
  #closed = false;

  constructor(options: RewardThreadOptions) {
    this.#options = options;
  }

  /** Starts the first thread. */
  open(): Promise<void> {
    const { path } = this.#options;
    return new Promise((resolve, reject) => {
      const thread = this.#start();
      const { worker } = thread;
      const slow = setTimeout(() => {
        reject(new Error(`reward file ${path} is not loaded after ${LOAD_MS / 1000} s`));
        this.#end(thread, 'hung');
      }, LOAD_MS);
      const ended = (code: number) => {
        clearTimeout(slow);
        reject(new Error(`reward file ${path} ended its thread with code ${code}`));
      };
      worker.once('message', (message: FromThread) => {
        clearTimeout(slow);
        worker.off('exit', ended);
        worker.unref();
        if (message.type !== 'refused') resolve();
        // A thread does not say the line of what cannot be parsed; nothing of such a file runs here either.
        else if (message.unparsed) loadRewardFile(path).then(() => reject(new Error(message.message)), reject);
        else reject(new Error(message.message));
      });
      worker.once('exit', ended);
    });
  }

  async call(batch: readonly RewardInput[]): Promise<Scores> {
    const signal = AbortSignal.any(batch.map(input => input.signal));
    signal.throwIfAborted();
    if (this.#closed) throw new Error('the reward file has been closed');
    let onAbort: (() => void) | undefined;
    try {
      return await new Promise<Scores>((resolve, reject) => {
        const sent = batch.map(({ signal: _, ...input }) => input);
        const id = this.#ids++;
        const call: Call = { id, batch: sent, settle: { resolve, reject }, thread: this.#latest(), stalled: undefined };
        this.#calls.set(id, call);
        onAbort = () => this.#abort(call, signal.reason);
        signal.addEventListener('abort', onAbort, { once: true });
        this.#give(call, call.thread);
      });
    } finally {
      signal.removeEventListener('abort', onAbort!);
    }
  }

  /** The newest thread: older ones may have stalled. */
  #latest(): Thread {
    return [...this.#threads].at(-1) ?? this.#start();
  }

  #start(): Thread {
    const { path, entry = beside(import.meta.url, 'worker'), print = () => undefined } = this.#options;
    const worker = startThread(entry, { workerData: { path }, stdout: true, stderr: true });
    const thread: Thread = { worker, ready: false, pings: 0, silence: undefined };
    this.#threads.add(thread);
    for (const stream of [worker.stdout, worker.stderr]) byLines(stream, print);
    worker.on('message', (message: FromThread) => this.#receive(thread, message));
    worker.on('error', error => this.#end(thread, error));
    worker.on('exit', code => this.#end(thread, new Error(`it ended with code ${code}`)));
    return thread;
  }

  #give(call: Call, thread: Thread): void {
    call.thread = thread;
    try {
      thread.worker.postMessage({ type: 'call', id: call.id, batch: call.batch } satisfies ToThread);
    } catch (error) {
      this.#settle(call).reject(
        new Error(`what the reward is given cannot be copied to its thread: ${(error as Error).message}`, {
          cause: error,
        }),
      );
      return;
    }
    thread.worker.ref();
    clearTimeout(call.stalled);
    call.stalled = setTimeout(() => this.#stall(call), this.#options.stallMs ?? 1000);
  }

  /** Its thread does not get to it. */
  #stall(call: Call): void {
    if (!call.thread.ready) {
      call.stalled = setTimeout(() => this.#stall(call), this.#options.stallMs ?? 1000);
      return;
    }
    const newest = this.#latest();
    if (newest !== call.thread) this.#give(call, newest);
    else if (this.#threads.size < MAX_THREADS) this.#give(call, this.#start());
  }

  #receive(thread: Thread, message: FromThread): void {
    if (message.type === 'ready') thread.ready = true;
    // What it said before it was asked says nothing about now.
    if (message.type === 'pong' && --thread.pings === 0) {
      clearTimeout(thread.silence);
      thread.silence = undefined;
    }
    if (message.type === 'refused') this.#end(thread, new Error(message.message));
    if (!('id' in message)) return;
    const call = this.#calls.get(message.id);
    // A call that has been given to another thread since is that one's, unless this one is first.
    if (call === undefined) return;
    if (message.type === 'begun') {
      if (call.thread === thread) clearTimeout(call.stalled);
    } else if (message.type === 'result') this.#settle(call).resolve(message.scores);
    else this.#settle(call).reject(message.error);
  }

  #abort(call: Call, reason: unknown): void {
    const { thread } = call;
    this.#settle(call).reject(reason);
    thread.worker.postMessage({ type: 'abort', id: call.id } satisfies ToThread);
    thread.worker.postMessage({ type: 'ping' } satisfies ToThread);
    thread.pings += 1;
    const silent = () => this.#end(thread, 'hung');
    thread.silence ??= setTimeout(silent, this.#options.graceMs ?? 1000);
    thread.silence.unref();
  }

  #settle(call: Call): Call['settle'] {
    clearTimeout(call.stalled);
    this.#calls.delete(call.id);
    if (this.#calls.size === 0) for (const { worker } of this.#threads) worker.unref();
    return call.settle;
  }

  /** What else a hung thread had been given goes to another; one that died by itself fails what it had. */
  #end(thread: Thread, why: Error | 'hung'): void {
    if (!this.#threads.delete(thread)) return;
    clearTimeout(thread.silence);
    void thread.worker.terminate();
    for (const call of [...this.#calls.values()].filter(one => one.thread === thread)) {
      if (why === 'hung') this.#give(call, this.#latest());
      else this.#settle(call).reject(new Error(`the thread of the reward file died: ${why.message}`, { cause: why }));
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const open = [...this.#threads];
    this.#threads.clear();
    for (const call of [...this.#calls.values()])
      this.#settle(call).reject(new Error('the reward file has been closed'));
    await Promise.all(
      open.map(({ worker, silence }) => {
        clearTimeout(silence);
        return worker.terminate();
      }),
    );
  }
}

function byLines(stream: Readable, print: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) print(line);
  });
  stream.on('end', () => rest !== '' && print(rest));
}
