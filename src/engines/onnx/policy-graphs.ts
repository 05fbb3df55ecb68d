import { decodeForm, prefillForm, weightInputs } from '../../nn/models/decoder.ts';
import { emit } from '../../nn/onnx.ts';
import { KeyValueCache } from './cache.ts';
import type { Model } from './model.ts';
import { cachedPositions } from './positions.ts';
import { created, Session, type SessionOptions } from './session.ts';

/** What one decode step reads: an entry for each row of the cache. */
export interface DecodeStep {
  /** Rows of one run, the last of which is filled up with empty ones; without it one run takes all rows as they are. */
  readonly block?: number | undefined;
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

/** The policy as it is sampled from: prefill and decode graphs over caches whose rows the caller manages. */
export class PolicyGraphs {
  readonly #model: Model;
  readonly #options: SessionOptions;
  readonly #cacheNames: readonly string[];
  #sessions: Promise<{ prefill: Session; decode: Session }> | undefined;

  constructor(model: Model, options: SessionOptions) {
    this.#model = model;
    this.#options = { threads: options.threads, device: options.device };
    this.#cacheNames = Array.from({ length: model.config.layers }, (_, i) => [`key.${i}`, `value.${i}`]).flat();
  }

  async close(): Promise<void> {
    for (const { prefill, decode } of await created([this.#sessions])) {
      await prefill.release();
      await decode.release();
    }
  }

  newCache(): KeyValueCache {
    return new KeyValueCache(this.#model.config);
  }

  /**
   * Computes the next tokens of each prompt, `chunk` or what is left, into rows [first, first + prompts.length) of the
   * cache. The shape of the run depends on the number of prompts, `chunk` and the length of the cache only.
   */
  async prefill(
    cache: KeyValueCache,
    prompts: readonly Int32Array[],
    { first, chunk }: { readonly first: number; readonly chunk: number },
  ): Promise<void> {
    const { prefill } = await this.#open();
    const rows = prompts.length;
    const tokens = new BigInt64Array(rows * chunk);
    const counts = prompts.map((prompt, i) => {
      const start = cache.lengths[first + i]!;
      const count = Math.min(chunk, prompt.length - start);
      for (let c = 0; c < count; c++) tokens[i * chunk + c] = BigInt(prompt[start + c]!);
      return count;
    });
    const feeds = { tokens, ...this.#cacheFeeds(cache, first, rows, chunk) };
    const chunks = this.#chunks(await prefill.run(feeds, { B: rows, C: chunk, L: cache.length }));
    counts.forEach((count, i) => {
      if (count > 0) cache.append(first + i, chunks, i, chunk, count);
    });
  }

  /** Draws one token for every row of the cache, and appends the one it was continued from. */
  async decode(cache: KeyValueCache, step: DecodeStep): Promise<DecodeResult> {
    const rows = step.tokens.length;
    const block = step.block ?? rows;
    cache.reserve(Math.ceil(rows / block) * block, Math.max(...cache.lengths.slice(0, rows)) + 1);
    const parts: DecodeResult[] = [];
    for (let first = 0; first < rows; first += block) parts.push(await this.#decodeBlock(cache, step, first, block));
    return parts.length === 1 ? parts[0]! : joined(parts);
  }

  /** Rows [first, first + block), of which those beyond the step's are empty. */
  async #decodeBlock(cache: KeyValueCache, step: DecodeStep, first: number, block: number): Promise<DecodeResult> {
    const { decode } = await this.#open();
    const rows = Math.min(block, step.tokens.length - first);
    const temperatures = step.temperatures.slice(first, first + rows);
    const inverse = new Float32Array(block).fill(1);
    temperatures.forEach((temperature, i) => {
      if (temperature > 0) inverse[i] = 1 / temperature;
    });
    const feeds = {
      tokens: filled(new BigInt64Array(block), step.tokens.slice(first, first + rows).map(BigInt)),
      inverse_temperature: inverse,
      greedy: filled(
        new Float32Array(block),
        temperatures.map(temperature => (temperature === 0 ? 1 : 0)),
      ),
      uniform: filled(new Float32Array(block), step.uniforms.slice(first, first + rows)),
      ...this.#cacheFeeds(cache, first, block, 1),
    };
    const fetch = ['token', 'logprob', ...(step.distributions ? ['logp'] : []), ...this.#cacheNames];
    const outputs = await decode.run(feeds, { B: block, L: cache.length }, { fetch });
    cache.appendOne(first, rows, this.#chunks(outputs));
    return {
      tokens: (outputs.token as BigInt64Array).subarray(0, rows),
      logprobs: (outputs.logprob as Float32Array).subarray(0, rows),
      distributions: (outputs.logp as Float32Array | undefined)?.subarray(0, rows * this.#model.config.vocabSize),
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

  /** Everything that the cached form reads beside tokens, for rows [first, first + count); those not in use are empty. */
  #cacheFeeds(cache: KeyValueCache, first: number, count: number, chunk: number): Record<string, Float32Array> {
    const { config } = this.#model;
    const lengths = Array.from({ length: count }, (_, i) => (first + i < cache.rows ? cache.lengths[first + i]! : 0));
    const feeds: Record<string, Float32Array> = {
      ...this.#model.views(this.#model.weights),
      ...cachedPositions(this.#model, lengths, cache.length, chunk),
    };
    for (let layer = 0; layer < config.layers; layer++) {
      feeds[`past_key.${layer}`] = cache.view(layer, 'key', first, count);
      feeds[`past_value.${layer}`] = cache.view(layer, 'value', first, count);
    }
    return feeds;
  }
}

function filled<T extends BigInt64Array | Float32Array>(array: T, values: readonly T[number][]): T {
  array.set(values as never);
  return array;
}

function joined(parts: readonly DecodeResult[]): DecodeResult {
  const count = parts.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const tokens = new BigInt64Array(count);
  const logprobs = new Float32Array(count);
  const width = (parts[0]!.distributions?.length ?? 0) / parts[0]!.tokens.length;
  const distributions = width > 0 ? new Float32Array(count * width) : undefined;
  let at = 0;
  for (const part of parts) {
    tokens.set(part.tokens, at);
    logprobs.set(part.logprobs, at);
    if (part.distributions) distributions?.set(part.distributions, at * width);
    at += part.tokens.length;
  }
  return { tokens, logprobs, distributions };
}
