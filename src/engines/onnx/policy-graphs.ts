import { decodeForm, prefillForm, weightInputs } from '../../nn/models/decoder.ts';
import { emit } from '../../nn/onnx.ts';
import { KeyValueCache } from './cache.ts';
import type { Model } from './model.ts';
import { cachedPositions } from './positions.ts';
import { created, Session, type SessionOptions } from './session.ts';

/** What one decode step reads: an entry for each row of the cache. */
export interface DecodeStep {
  /** The token that each row is continued from. */
  readonly tokens: readonly number[];
  /** 0 takes the most probable token. */
  readonly temperatures: readonly number[];
  /** In [0, 1 − 2⁻²³]: the place in the cumulative distribution that is drawn. */
  readonly uniforms: readonly number[];
  /** Whether whole distributions are wanted. */
  readonly distributions: boolean;
}

/** Of each row: the drawn token, its log-probability after temperature, and all of them where they were asked for. */
export interface DecodeResult {
  readonly tokens: BigInt64Array;
  readonly logprobs: Float32Array;
  /** [B, V] */
  readonly distributions: Float32Array | undefined;
}

type Outputs = Awaited<ReturnType<Session['run']>>;

/** The policy as it is sampled from: prefill and decode graphs over one cache, whose rows the caller manages. */
export class PolicyGraphs {
  readonly cache: KeyValueCache;
  readonly #model: Model;
  readonly #options: SessionOptions;
  readonly #cacheNames: readonly string[];
  #sessions: Promise<{ prefill: Session; decode: Session }> | undefined;

  constructor(model: Model, options: SessionOptions) {
    this.#model = model;
    this.#options = { threads: options.threads, device: options.device };
    this.cache = new KeyValueCache(model.config);
    this.#cacheNames = Array.from({ length: model.config.layers }, (_, i) => [`key.${i}`, `value.${i}`]).flat();
  }

  async close(): Promise<void> {
    for (const { prefill, decode } of await created([this.#sessions])) {
      await prefill.release();
      await decode.release();
    }
  }

  /** Computes the next `chunk` tokens, or what is left, of each prompt into rows [first, first + prompts.length). */
  async prefill(prompts: readonly Int32Array[], first: number, chunk: number): Promise<void> {
    const { prefill } = await this.#open();
    const rows = prompts.length;
    const tokens = new BigInt64Array(rows * chunk);
    const counts = prompts.map((prompt, i) => {
      const start = this.cache.lengths[first + i]!;
      const count = Math.min(chunk, prompt.length - start);
      for (let c = 0; c < count; c++) tokens[i * chunk + c] = BigInt(prompt[start + c]!);
      return count;
    });
    const feeds = { tokens, ...this.#cacheFeeds(first, rows, chunk) };
    const chunks = this.#chunks(await prefill.run(feeds, { B: rows, C: chunk, L: this.cache.length }));
    counts.forEach((count, i) => {
      if (count > 0) this.cache.append(first + i, chunks, i, chunk, count);
    });
  }

  /** Draws one token for every row, and appends the one it was continued from to the cache. */
  async decode(step: DecodeStep): Promise<DecodeResult> {
    const { decode } = await this.#open();
    const rows = step.tokens.length;
    this.cache.reserveLength(Math.max(...this.cache.lengths.slice(0, rows)) + 1);
    const feeds = {
      tokens: BigInt64Array.from(step.tokens, BigInt),
      inverse_temperature: Float32Array.from(step.temperatures, temperature => 1 / (temperature || 1)),
      greedy: Float32Array.from(step.temperatures, temperature => (temperature === 0 ? 1 : 0)),
      uniform: Float32Array.from(step.uniforms),
      ...this.#cacheFeeds(0, rows, 1),
    };
    const fetch = ['token', 'logprob', ...(step.distributions ? ['logp'] : []), ...this.#cacheNames];
    const outputs = await decode.run(feeds, { B: rows, L: this.cache.length }, { fetch });
    this.cache.appendToAll(this.#chunks(outputs));
    return {
      tokens: outputs.token as BigInt64Array,
      logprobs: outputs.logprob as Float32Array,
      distributions: outputs.logp as Float32Array | undefined,
    };
  }

  #open(): Promise<{ prefill: Session; decode: Session }> {
    this.#sessions ??= this.#create();
    return this.#sessions;
  }

  async #create() {
    const { config, inputs, adapter } = this.#model;
    return {
      prefill: await Session.create(emit(prefillForm(config, weightInputs(inputs, adapter))), this.#options),
      decode: await Session.create(emit(decodeForm(config, weightInputs(inputs, adapter))), this.#options),
    };
  }

  #chunks(outputs: Outputs): Float32Array[] {
    return this.#cacheNames.map(name => outputs[name] as Float32Array);
  }

  /** Everything that the cached form reads beside tokens, for rows [first, first + count). */
  #cacheFeeds(first: number, count: number, chunk: number): Record<string, Float32Array> {
    const { config } = this.#model;
    const lengths = this.cache.lengths.slice(first, first + count);
    const feeds: Record<string, Float32Array> = {
      ...this.#model.views(this.#model.weights),
      ...cachedPositions(this.#model, lengths, this.cache.length, chunk),
    };
    for (let layer = 0; layer < config.layers; layer++) {
      feeds[`past_key.${layer}`] = this.cache.view(layer, 'key', first, count);
      feeds[`past_value.${layer}`] = this.cache.view(layer, 'value', first, count);
    }
    return feeds;
  }
}
