import type { Worker } from 'node:worker_threads';
import { startThread } from '../thread.ts';

/** What a thread of a pool says: that it listens, and the result of each job, in the order in which they came. */
export type FromWorker<Result> =
  | { readonly type: 'ready' }
  | { readonly type: 'result'; readonly result: Result }
  | { readonly type: 'failed'; readonly error: Error };

/** Stands for the result of a job that had not ended by its deadline. */
export const TIMED_OUT: unique symbol = Symbol('timed out');

export interface PoolOptions {
  /** The thread's file, with the ending of the file that names it: .ts from sources, .js when compiled. */
  readonly entry: URL;
  /** Threads. They are started when there is something to do. */
  readonly workers: number;
  /** Milliseconds for one job, from when its thread takes it up. */
  readonly deadlineMs: number;
}

interface Job<Input, Result> {
  readonly input: Input;
  readonly resolve: (result: Result | typeof TIMED_OUT) => void;
  readonly reject: (error: unknown) => void;
}

/** Jobs that a thread is given ahead, so that it need not wait for the next one. */
const AHEAD = 32;
/** A thread's own memory; it ends when it needs more, and the job fails. */
const MEMORY_MB = 512;

/**
 * Threads that can be killed: a job that passes its deadline ends its thread, another one takes over what the thread had
 * not begun. A thread that dies fails the job that it was at, and no other. Idle threads do not keep the process alive.
 */
export class WorkerPool<Input, Result> {
  readonly #options: PoolOptions;
  readonly #threads = new Set<Thread<Input, Result>>();
  #queue: Job<Input, Result>[] = [];
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /**
   * Its result, or TIMED_OUT.
   * @throws what the thread threw, or an Error that says how the thread died
   */
  run(input: Input): Promise<Result | typeof TIMED_OUT> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new Error('the pool of workers is closed'));
        return;
      }
      this.#queue.push({ input, resolve, reject });
      this.#assign();
    });
  }

  #assign(): void {
    while (this.#queue.length > 0) {
      let least: Thread<Input, Result> | undefined;
      for (const thread of this.#threads) if (thread.load < (least?.load ?? AHEAD)) least = thread;
      if ((least === undefined || least.load > 0) && this.#threads.size < this.#options.workers) least = this.#start();
      if (least === undefined) return;
      least.give(this.#queue.shift()!);
    }
  }

  #start(): Thread<Input, Result> {
    const thread: Thread<Input, Result> = new Thread(this.#options, {
      idle: () => this.#assign(),
      ended: left => {
        this.#threads.delete(thread);
        this.#queue = [...left, ...this.#queue];
        this.#assign();
      },
    });
    this.#threads.add(thread);
    return thread;
  }

  /** Ends the threads; what has not been judged is rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    const waiting = this.#queue;
    this.#queue = [];
    const reason = new Error('the pool of workers was closed');
    for (const { reject } of waiting) reject(reason);
    await Promise.all([...this.#threads].map(thread => thread.close(reason)));
  }
}

interface ThreadEvents<Input, Result> {
  /** It can take more. */
  idle(): void;
  /** @param left what it had been given and had not begun */
  ended(left: readonly Job<Input, Result>[]): void;
}

class Thread<Input, Result> {
  readonly #worker: Worker;
  readonly #options: PoolOptions;
  readonly #events: ThreadEvents<Input, Result>;
  /** In the order in which they were given; the first is the one that it is at. */
  readonly #jobs: Job<Input, Result>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #ready = false;
  #over = false;

  constructor(options: PoolOptions, events: ThreadEvents<Input, Result>) {
    this.#options = options;
    this.#events = events;
    this.#worker = startThread(options.entry, { resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB } });
    this.#worker.on('message', (message: FromWorker<Result>) => this.#receive(message));
    this.#worker.on('error', error => this.#end(error));
    this.#worker.on('exit', code => this.#end(new Error(`the worker ended with code ${code}`)));
  }

  get load(): number {
    return this.#jobs.length;
  }

  give(job: Job<Input, Result>): void {
    this.#worker.ref();
    this.#worker.postMessage(job.input);
    if (this.#jobs.push(job) === 1) this.#watch();
  }

  #receive(message: FromWorker<Result>): void {
    if (this.#over) return;
    if (message.type === 'ready') {
      this.#ready = true;
    } else {
      const job = this.#jobs.shift()!;
      if (message.type === 'result') job.resolve(message.result);
      else job.reject(message.error);
    }
    this.#watch();
    if (this.#jobs.length === 0) this.#worker.unref();
    if (this.#jobs.length < AHEAD / 2) this.#events.idle();
  }

  #watch(): void {
    clearTimeout(this.#timer);
    if (!this.#ready || this.#jobs.length === 0) return;
    const job = this.#jobs[0];
    // A result that has arrived while this thread was busy is read first: timers come before messages.
    const late = () => setImmediate(() => this.#jobs[0] === job && this.#end(TIMED_OUT));
    this.#timer = setTimeout(late, this.#options.deadlineMs);
  }

  #end(why: Error | typeof TIMED_OUT): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    const job = this.#jobs.shift();
    if (why === TIMED_OUT) job?.resolve(TIMED_OUT);
    else job?.reject(new Error(`a worker died: ${why.message}`, { cause: why }));
    this.#events.ended(this.#jobs.splice(0));
    void this.#worker.terminate();
  }

  async close(reason: Error): Promise<void> {
    this.#over = true;
    clearTimeout(this.#timer);
    for (const { reject } of this.#jobs.splice(0)) reject(reason);
    await this.#worker.terminate();
  }
}
