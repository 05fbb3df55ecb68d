import { weightInputs } from '../../nn/models/decoder.ts';
import {
  fixedWeights,
  floatWeights,
  mergedLayer,
  quantizedHead,
  quantizedLayer,
  quantizedWeights,
  TIED_HEAD,
} from '../../nn/models/policy-weights.ts';
import { decodeForm, prefillForm } from '../../nn/models/sampling.ts';
import { type EmittedModel, emit } from '../../nn/onnx.ts';
import type { SamplingDType } from './dtype.ts';
import { int8Saturates } from './int8-probe.ts';
import { LayerSession } from './layer-session.ts';
import type { Model } from './model.ts';
import { created, Session, type SessionOptions } from './session.ts';

export interface PolicySessionsOptions extends SessionOptions {
  /** What matrices are multiplied in; float32 when not given. */
  readonly dtype?: SamplingDType | undefined;
}

interface Sessions {
  readonly prefill: Session;
  readonly decode: Session;
}

/**
 * The sessions that the policy is sampled with. Weights become part of the decode session, where the runtime lays them
 * out for its products, so it is made anew for the first step after they change. The prefill session reads the learner's
 * own weights; in int8 both hold the quantised ones.
 */
export class PolicySessions {
  readonly #model: Model;
  readonly #options: SessionOptions;
  readonly #dtype: SamplingDType;
  /** What does not depend on the weights' values, made once. */
  readonly #lasting = new Map<string, Promise<Session | LayerSession>>();
  #sessions: Promise<Sessions> | undefined;
  #changed = false;

  constructor(model: Model, { threads, device, dtype = 'float32' }: PolicySessionsOptions) {
    this.#model = model;
    this.#options = { threads, device };
    this.#dtype = dtype;
  }

  /** The weights have other values from now on. */
  weightsChanged(): void {
    this.#changed = true;
  }

  async close(): Promise<void> {
    for (const sessions of await created([this.#sessions])) await this.#release(sessions);
    for (const session of await created([...this.#lasting.values()])) await session.release();
  }

  async open(): Promise<Sessions> {
    if (this.#changed) {
      this.#changed = false;
      const old = this.#sessions;
      this.#sessions = undefined;
      // First, so that there are never two copies of the weights.
      for (const sessions of await created([old])) await this.#release(sessions);
    }
    this.#sessions ??= this.#dtype === 'int8' ? this.#quantized() : this.#fixed();
    return this.#sessions;
  }

  /** Of sessions that held old weights. */
  async #release({ prefill, decode }: Sessions): Promise<void> {
    await decode.release();
    if (this.#dtype === 'int8') await prefill.release();
  }

  async #fixed(): Promise<Sessions> {
    const { config, inputs, adapter } = this.#model;
    const weights = weightInputs(inputs, adapter);
    const prefill = await this.#once('prefill', () => this.#create(emit(prefillForm(config, floatWeights(weights)))));
    const { embed, ...views } = this.#model.views(this.#model.weights);
    const merging = adapter && (await this.#once('merging', () => this.#layers(mergedLayer(weights, adapter))));
    const merged = merging && (await merging.run(name => views[name]!));
    const initializers = new Map(Object.entries({ ...views, ...merged, [TIED_HEAD]: embed! }));
    return { prefill, decode: await this.#create(emit(decodeForm(config, fixedWeights(weights)), { initializers })) };
  }

  async #quantized(): Promise<Sessions> {
    const { config, inputs, adapter } = this.#model;
    const weights = weightInputs(inputs, adapter);
    const layers = await this.#once('layers', () => this.#layers(quantizedLayer(weights)));
    const head = await this.#once('head', () => this.#create(emit(quantizedHead(config, weights))));
    const views = this.#model.views(this.#model.weights);
    const quantized = { ...(await layers.run(name => views[name]!)), ...(await head.run(views)) };
    const { embed: _, ...rest } = views;
    const initializers = new Map(Object.entries({ ...rest, ...quantized }));
    const exactInt8 = await int8Saturates();
    const policy = quantizedWeights(weights);
    return {
      prefill: await this.#create(emit(prefillForm(config, policy), { initializers }), exactInt8),
      decode: await this.#create(emit(decodeForm(config, policy), { initializers }), exactInt8),
    };
  }

  #once<S extends Session | LayerSession>(name: string, create: () => Promise<S>): Promise<S> {
    let session = this.#lasting.get(name) as Promise<S> | undefined;
    if (session === undefined) {
      session = create();
      this.#lasting.set(name, session);
    }
    return session;
  }

  #layers(outputs: Parameters<typeof LayerSession.create>[0]): Promise<LayerSession> {
    return LayerSession.create(outputs, this.#model.config.layers, this.#options);
  }

  #create(model: EmittedModel, exactInt8 = false): Promise<Session> {
    return Session.create(model, { ...this.#options, exactInt8 });
  }
}
