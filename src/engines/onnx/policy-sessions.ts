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
import { type Weights, weightInputs } from '../../nn/models/weights.ts';
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
  /** Those that hold the weights they were made with. */
  readonly holding: readonly Session[];
}

/**
 * The sessions that the policy is sampled with. Weights become part of the decode session, where the runtime lays them
 * out for its products, so it is made anew for the first step after they change; the prefill session reads the learner's
 * own weights. In int8 both hold the quantised ones. Where the base is kept in few bits neither holds any: the copy
 * would be larger than the base.
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
    await this.#release();
    for (const session of await created([...this.#lasting.values()])) await session.release();
  }

  async open(): Promise<Sessions> {
    if (this.#changed) {
      this.#changed = false;
      // First, so that there are never two copies of the weights.
      await this.#release();
    }
    this.#sessions ??= this.#make();
    return this.#sessions;
  }

  /** Sessions that hold weights. */
  async #release(): Promise<void> {
    const old = this.#sessions;
    this.#sessions = undefined;
    for (const { holding } of await created([old])) for (const session of holding) await session.release();
  }

  #make(): Promise<Sessions> {
    if (this.#dtype === 'int8') return this.#quantized();
    return this.#model.frozen ? this.#fed() : this.#fixed();
  }

  async #fed(): Promise<Sessions> {
    const { config } = this.#model;
    const policy = floatWeights(this.#weights());
    return {
      prefill: await this.#once('prefill', () => this.#create(emit(prefillForm(config, policy)))),
      decode: await this.#once('decode', () => this.#create(emit(decodeForm(config, policy)))),
      holding: [],
    };
  }

  async #fixed(): Promise<Sessions> {
    const { config, adapter } = this.#model;
    const weights = this.#weights();
    const prefill = await this.#once('prefill', () => this.#create(emit(prefillForm(config, floatWeights(weights)))));
    const { embed, ...views } = this.#model.views(this.#model.weights);
    const merging = adapter && (await this.#once('merging', () => this.#layers(mergedLayer(weights, adapter))));
    const merged = await merging?.run(name => views[name]!);
    const initializers = new Map(Object.entries({ ...views, ...merged, [TIED_HEAD]: embed! }));
    const decode = await this.#create(emit(decodeForm(config, fixedWeights(weights)), { initializers }));
    return { prefill, decode, holding: [decode] };
  }

  async #quantized(): Promise<Sessions> {
    const { config } = this.#model;
    const weights = this.#weights();
    const layers = await this.#once('layers', () => this.#layers(quantizedLayer(weights)));
    const head = await this.#once('head', () => this.#create(emit(quantizedHead(config, weights))));
    const views = this.#model.views(this.#model.weights);
    const ofLayers = await layers.run(name => views[name] ?? this.#model.thawed(name));
    const { embed: _, ...rest } = views;
    const initializers = new Map(Object.entries({ ...rest, ...ofLayers, ...(await head.run(views)) }));
    const exactInt8 = await int8Saturates();
    const policy = quantizedWeights(weights);
    const prefill = await this.#create(emit(prefillForm(config, policy), { initializers }), exactInt8);
    const decode = await this.#create(emit(decodeForm(config, policy), { initializers }), exactInt8);
    return { prefill, decode, holding: [prefill, decode] };
  }

  #weights(): Weights {
    return weightInputs(this.#model.inputs, this.#model);
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
