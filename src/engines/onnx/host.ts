import { readTokenBytes, type TokenBytes } from '../../text/token-bytes.ts';
import type { Generation } from '../contracts.ts';
import { exportModel } from './export.ts';
import { OnnxLearnerCore } from './learner.ts';
import { Model } from './model.ts';
import type { FromHost, HostCalls, HostInfo, HostOptions, ToHost } from './protocol.ts';
import type { SamplerRequest } from './row.ts';
import { OnnxSamplerCore } from './sampler.ts';
import { loadState, saveState } from './state.ts';

/**
 * The engine inside its thread: owns the weights, answers calls, and decodes while there are requests. Calls are
 * carried out one after another and begin between two decode steps, never inside one; decoding goes on while the
 * learner computes. The learner works on the sampler's weights, so publishing costs nothing.
 */
export class EngineHost {
  readonly info: HostInfo;
  readonly #post: (message: FromHost) => void;
  readonly #sampler: OnnxSamplerCore;
  readonly #tokenBytes: () => TokenBytes;
  readonly #calls: HostCalls;
  #tokens: [number, number][] = [];
  #finished: [number, Generation][] = [];
  #paused = false;
  #running = false;
  /** The decode step that is running; never rejects. */
  #step: Promise<void> | undefined;
  /** Ends with the last call; never rejects. */
  #lastCall: Promise<void> = Promise.resolve();

  constructor(options: HostOptions, post: (message: FromHost) => void) {
    this.#post = post;
    const model = new Model(options.model, options.initSeed, options.head, options.lora);
    this.info = {
      contextLength: model.config.maxPositions,
      vocabularySize: model.config.vocabSize,
      parameters: model.weights.length,
    };
    let bytes: TokenBytes | undefined;
    this.#tokenBytes = () => {
      bytes ??= readTokenBytes(options.model);
      return bytes;
    };
    const events = {
      token: (id: number, token: number) => this.#tokens.push([id, token]),
      finished: (id: number, generation: Generation) => this.#finished.push([id, generation]),
    };
    const sampler = new OnnxSamplerCore(model, options.sampler, events, this.#tokenBytes);
    this.#sampler = sampler;
    const learner = new OnnxLearnerCore(model, options.learner);
    this.#calls = {
      forward: (batch, weights) => learner.forward(batch, weights),
      values: batch => learner.values(batch),
      forwardBackward: (batch, program) => learner.forwardBackward(batch, program),
      optimizerStep: async lr => {
        const result = await learner.optimizerStep(lr);
        sampler.weightsChanged();
        return result;
      },
      zeroGrad: () => learner.zeroGrad(),
      updateReference: beta => model.moveReference(beta),
      updateAverage: beta => model.updateAverage(beta),
      swapAverage: () => {
        model.swapAverage();
        sampler.weightsChanged();
      },
      gradient: () => learner.gradient(),
      save: directory => saveState(directory, model, learner),
      load: async directory => {
        await loadState(directory, model, learner);
        sampler.weightsChanged();
        return { version: model.version };
      },
      export: directory => exportModel(directory, model, options.saveDtype),
      weights: () => model.weights.slice(),
      setWeights: (weights, version) => {
        if (weights.length !== model.weights.length) {
          throw new Error(
            `got ${weights.length} weights for a model of ${model.weights.length}: another architecture or adapter`,
          );
        }
        model.weights.set(weights);
        model.version = version;
        sampler.weightsChanged();
      },
      pause: mode => {
        this.#paused = true;
        if (mode === 'abort') sampler.abortAll();
        this.#flush();
      },
      resume: () => {
        this.#paused = false;
        void this.#run();
      },
      sleep: () => sampler.sleep(),
      offload: () => learner.offload(),
      statistics: () => sampler.statistics,
      close: async () => {
        this.#paused = true;
        await learner.close();
        await sampler.close();
      },
    };
  }

  receive(message: ToHost): void {
    if (message.type === 'call') {
      this.#lastCall = this.#lastCall.then(() => this.#answer(message.id, message.method, message.args));
    } else if (message.type === 'submit') {
      this.#submit(message.requests);
    } else {
      void this.#abort(message.id);
    }
  }

  /** Requests whose stop strings cannot be looked for end here, and no others. */
  #submit(requests: readonly SamplerRequest[]): void {
    const refused = new Set<SamplerRequest>();
    const stopping = requests.filter(({ params }) => params.stopStrings.length > 0);
    try {
      if (stopping.length > 0) this.#tokenBytes();
    } catch (error) {
      for (const request of stopping) refused.add(request);
      this.#post({ type: 'failed', ids: stopping.map(({ id }) => id), error: asError(error) });
    }
    this.#sampler.submit(requests.filter(request => !refused.has(request)));
    void this.#run();
  }

  async #abort(id: number): Promise<void> {
    await this.#betweenSteps();
    this.#sampler.abort(id);
    this.#flush();
  }

  async #answer(id: number, method: keyof HostCalls, args: readonly unknown[]): Promise<void> {
    await this.#betweenSteps();
    try {
      const call = this.#calls[method] as (...args: readonly unknown[]) => unknown;
      this.#post({ type: 'result', id, value: await call(...args) });
    } catch (error) {
      this.#post({ type: 'error', id, error: asError(error) });
    }
  }

  async #betweenSteps(): Promise<void> {
    while (this.#step !== undefined) await this.#step;
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    while (this.#sampler.busy && !this.#paused) {
      this.#step = this.#advance();
      await this.#step;
      // Lets messages in: requests join, calls are answered.
      await new Promise(resolve => setImmediate(resolve));
    }
    this.#running = false;
  }

  async #advance(): Promise<void> {
    try {
      await this.#sampler.step();
      this.#flush();
    } catch (error) {
      this.#flush();
      this.#post({ type: 'failed', ids: this.#sampler.reset(), error: asError(error) });
    } finally {
      this.#step = undefined;
    }
  }

  #flush(): void {
    if (this.#tokens.length === 0 && this.#finished.length === 0) return;
    this.#post({ type: 'sampled', tokens: this.#tokens, finished: this.#finished });
    this.#tokens = [];
    this.#finished = [];
  }
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
