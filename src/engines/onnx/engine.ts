import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Loss } from '../../algorithms/ops.ts';
import type {
  Critic,
  ForwardResult,
  GenerateRequest,
  Generation,
  Learner,
  LearnerBatch,
  LossBatch,
  OptimizerStepResult,
  Sampler,
  SamplerStatistics,
  WeightAverage,
} from '../contracts.ts';
import { checkSampling } from '../sampling.ts';
import { type LossProgram, record } from './loss-program.ts';
import type { FromHost, HostCalls, HostInfo, HostOptions, ToHost } from './protocol.ts';
import { emptyGeneration } from './row.ts';

/** From TypeScript sources (tests, benches) the thread needs a loader first; the package runs compiled files. */
function startThread(workerData: HostOptions): Worker {
  if (!import.meta.url.endsWith('.ts')) return new Worker(new URL('./worker.js', import.meta.url), { workerData });
  const loader = import.meta.resolve('tsx/esm/api');
  const entry = new URL('./worker.ts', import.meta.url).href;
  const code = `import('${loader}').then(({ register }) => { register(); return import('${entry}'); })`;
  return new Worker(code, { workerData, eval: true });
}

/** What the thread says first: the loaded model, or why it was refused. */
async function started(worker: Worker): Promise<HostInfo> {
  const listening = new AbortController();
  const { signal } = listening;
  try {
    // Rejects when the thread emits 'error'.
    const first = once(worker, 'message', { signal }) as Promise<[FromHost]>;
    const ended = once(worker, 'exit', { signal }).then(([code]) => {
      throw new Error(`the engine thread ended with code ${code} while it was starting`);
    });
    const [message] = await Promise.race([first, ended]);
    if (message.type === 'ready') return message.info;
    throw message.type === 'refused' ? message.error : new Error(`the engine thread began with '${message.type}'`);
  } finally {
    listening.abort();
  }
}

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

interface InFlight extends Pending {
  readonly request: GenerateRequest;
  readonly release: () => void;
}

/**
 * The embedded engine as the main thread sees it: a Sampler and a Learner in front of one worker thread that owns the
 * weights. Requests made in one turn of the event loop travel in one message, in the order of their keys.
 */
export class OnnxEngine implements Sampler, Learner, Critic {
  readonly contextLength: number;
  readonly vocabularySize: number;
  readonly parameters: number;
  readonly average: WeightAverage = {
    update: ({ beta }) => this.#call('updateAverage', beta),
    swap: () => this.#call('swapAverage'),
  };
  #version = 0;
  readonly #worker: Worker;
  readonly #calls = new Map<number, Pending>();
  readonly #inFlight = new Map<number, InFlight>();
  readonly #programs = new WeakMap<Loss, LossProgram>();
  #outbox: { id: number; request: GenerateRequest }[] = [];
  #nextId = 0;
  #dead: Error | undefined;
  #closing: Promise<void> | undefined;

  /** Starts the thread and loads the model; rejects when the checkpoint is refused. */
  static async start(options: HostOptions): Promise<OnnxEngine> {
    const worker = startThread(options);
    try {
      return new OnnxEngine(worker, await started(worker));
    } catch (error) {
      await worker.terminate();
      throw error;
    }
  }

  private constructor(worker: Worker, info: HostInfo) {
    this.contextLength = info.contextLength;
    this.vocabularySize = info.vocabularySize;
    this.parameters = info.parameters;
    this.#worker = worker;
    worker.on('message', (message: FromHost) => this.#receive(message));
    worker.on('error', error => this.#fail(error));
    worker.on('exit', code => this.#fail(new Error(`the engine thread ended with code ${code}`)));
  }

  get version(): number {
    return this.#version;
  }

  generate(request: GenerateRequest): Promise<Generation> {
    try {
      this.#check(request);
    } catch (error) {
      return Promise.reject(error);
    }
    if (request.signal?.aborted) return Promise.resolve(emptyGeneration());
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#abort(id);
      request.signal?.addEventListener('abort', onAbort, { once: true });
      const release = () => request.signal?.removeEventListener('abort', onAbort);
      this.#inFlight.set(id, { resolve, reject, request, release });
      if (this.#outbox.length === 0) setImmediate(() => this.#submit());
      this.#outbox.push({ id, request });
    });
  }

  /** One thread holds both halves: its own learner's weights are served already; another's are copied. */
  async publish(learner: Learner): Promise<void> {
    if (learner === this) return;
    if (!(learner instanceof OnnxEngine)) {
      throw new Error('the embedded sampler can serve the weights of an embedded learner only');
    }
    const { version } = learner;
    await this.setWeights(await learner.weights(), version);
  }

  pause({ mode }: { mode: 'keep' | 'abort' }): Promise<void> {
    return this.#call('pause', mode);
  }

  resume(): Promise<void> {
    return this.#call('resume');
  }

  sleep(): Promise<void> {
    return this.#call('sleep');
  }

  statistics(): Promise<SamplerStatistics> {
    return this.#call('statistics');
  }

  offload(): Promise<number> {
    return this.#call('offload');
  }

  /** Caches are rebuilt when they are needed. */
  async wake(): Promise<void> {
    this.#throwIfDead();
  }

  forward(batch: LearnerBatch, options: { weights?: 'policy' | 'reference' } = {}): Promise<ForwardResult> {
    return this.#call('forward', batch, options.weights ?? 'policy');
  }

  /** Of an engine that was started with a value head. */
  values(batch: LearnerBatch): Promise<Float32Array[]> {
    return this.#call('values', batch);
  }

  async forwardBackward(batch: LossBatch, loss: Loss): Promise<Record<string, number>> {
    let program = this.#programs.get(loss);
    if (program === undefined) {
      program = record(loss);
      this.#programs.set(loss, program);
    }
    return this.#call('forwardBackward', batch, program);
  }

  async optimizerStep({ lr }: { lr: number }): Promise<OptimizerStepResult> {
    const result = await this.#call('optimizerStep', lr);
    this.#version += 1;
    return result;
  }

  zeroGrad(): Promise<void> {
    return this.#call('zeroGrad');
  }

  updateReference({ beta }: { beta: number }): Promise<void> {
    return this.#call('updateReference', beta);
  }

  /** The accumulated gradient by parameter name: a copy, for tests and inspection. */
  gradient(): Promise<Record<string, Float32Array>> {
    return this.#call('gradient');
  }

  /** All trained weights in the layout's order: a copy. */
  weights(): Promise<Float32Array> {
    return this.#call('weights');
  }

  async setWeights(weights: Float32Array, version: number): Promise<void> {
    await this.#call('setWeights', weights, version);
    this.#version = version;
  }

  save(directory: string): Promise<void> {
    return this.#call('save', directory);
  }

  async load(directory: string): Promise<void> {
    this.#version = (await this.#call('load', directory)).version;
  }

  export(directory: string): Promise<void> {
    return this.#call('export', directory);
  }

  /** Requests in flight are rejected. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#dead !== undefined) return;
    try {
      await this.#call('close');
    } finally {
      this.#fail(new Error('the engine is closed'));
      this.#worker.removeAllListeners();
      await this.#worker.terminate();
    }
  }

  #check({ tokens, params, seed, images = [] }: GenerateRequest): void {
    this.#throwIfDead();
    checkSampling(params, this.vocabularySize, seed);
    if (images.length > 0) throw new Error('the embedded engine reads text only; the request has images');
    if (tokens.length === 0) throw new RangeError('a request needs at least one token to continue');
    if (tokens.length >= this.contextLength) {
      throw new RangeError(
        `a prompt of ${tokens.length} tokens leaves no room for an answer: the model's window is ${this.contextLength}`,
      );
    }
    const bad = tokens.find(token => token < 0 || token >= this.vocabularySize);
    if (bad !== undefined) {
      throw new RangeError(`token id ${bad} is outside the model's vocabulary of ${this.vocabularySize} ids`);
    }
  }

  #submit(): void {
    const ordered = this.#outbox.toSorted(
      (a, b) => Number(a.request.key > b.request.key) - Number(a.request.key < b.request.key),
    );
    const requests = ordered.map(({ id, request }) => {
      const { tokens, params, seed, answered, onToken } = request;
      return { id, tokens, params, seed, answered, streaming: onToken !== undefined };
    });
    this.#outbox = [];
    this.#send({ type: 'submit', requests });
  }

  #abort(id: number): void {
    const unsent = this.#outbox.findIndex(entry => entry.id === id);
    if (unsent < 0) {
      this.#send({ type: 'abort', id });
    } else {
      this.#outbox.splice(unsent, 1);
      this.#finish(id)?.resolve(emptyGeneration() as never);
    }
  }

  #call<M extends keyof HostCalls>(
    method: M,
    ...args: Parameters<HostCalls[M]>
  ): Promise<Awaited<ReturnType<HostCalls[M]>>> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#send({ type: 'call', id, method, args });
    });
  }

  #send(message: ToHost): void {
    if (this.#dead === undefined) this.#worker.postMessage(message);
  }

  #receive(message: FromHost): void {
    switch (message.type) {
      case 'result':
      case 'error': {
        const call = this.#calls.get(message.id);
        this.#calls.delete(message.id);
        if (message.type === 'result') call?.resolve(message.value as never);
        else call?.reject(message.error);
        return;
      }
      case 'sampled':
        for (const [id, token] of message.tokens) this.#deliver(id, token);
        for (const [id, generation] of message.finished) this.#finish(id)?.resolve(generation as never);
        return;
      case 'failed':
        for (const id of message.ids) this.#finish(id)?.reject(message.error);
        return;
      default:
        throw new Error(`unexpected message '${message.type}' of the engine thread`);
    }
  }

  /** What the listener throws ends its own request only. */
  #deliver(id: number, token: number): void {
    try {
      this.#inFlight.get(id)?.request.onToken?.(token);
    } catch (error) {
      this.#finish(id)?.reject(error as Error);
      this.#send({ type: 'abort', id });
    }
  }

  #finish(id: number): InFlight | undefined {
    const entry = this.#inFlight.get(id);
    this.#inFlight.delete(id);
    entry?.release();
    return entry;
  }

  /** The thread is gone: everything that waits for it ends. */
  #fail(error: Error): void {
    this.#dead ??= error;
    for (const call of this.#calls.values()) call.reject(error);
    this.#calls.clear();
    for (const id of [...this.#inFlight.keys()]) this.#finish(id)?.reject(error);
  }

  #throwIfDead(): void {
    if (this.#dead !== undefined) throw this.#dead;
  }
}
