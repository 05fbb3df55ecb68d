import { KeyValueCache } from './cache.ts';
import { cachedPositions } from './cached-positions.ts';
import type { Model } from './model.ts';
import { PolicySessions, type PolicySessionsOptions } from './policy-sessions.ts';
import type { TensorData } from './session.ts';

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
  /** [V] log-probabilities of one row. */
  distribution(row: number): Float32Array;
}

/** The policy as it is sampled from: prefill and decode graphs over caches whose rows the caller manages. */
export class PolicyGraphs {
  readonly #model: Model;
  readonly #sessions: PolicySessions;

  constructor(model: Model, options: PolicySessionsOptions) {
    this.#model = model;
    this.#sessions = new PolicySessions(model, options);
  }

  /** The weights have other values from now on. */
  weightsChanged(): void {
    this.#sessions.weightsChanged();
  }

  close(): Promise<void> {
    return this.#sessions.close();
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
    const { prefill } = await this.#sessions.open();
    const rows = prompts.length;
    const tokens = new BigInt64Array(rows * chunk);
    const counts = prompts.map((prompt, i) => {
      const start = cache.lengths[first + i]!;
      const count = Math.min(chunk, prompt.length - start);
      for (let c = 0; c < count; c++) tokens[i * chunk + c] = BigInt(prompt[start + c]!);
      return count;
    });
    const { feeds, S } = this.#cacheFeeds(cache, first, rows, chunk);
    const outputs = await prefill.run(
      { ...this.#model.views(this.#model.weights), ...feeds, tokens },
      { B: rows, C: chunk, L: cache.length, S },
    );
    counts.forEach((count, i) => {
      if (count > 0) cache.append(first + i, outputs.appended as Float32Array, i * chunk, count);
    });
  }

  /** Draws one token for every row of the cache, and appends the one it was continued from. */
  async decode(cache: KeyValueCache, step: DecodeStep): Promise<DecodeResult> {
    const rows = step.tokens.length;
    const block = step.block ?? rows;
    cache.reserve(Math.ceil(rows / block) * block, Math.max(...cache.lengths.slice(0, rows)) + 1);
    const parts: DecodeResult[] = [];
    for (let first = 0; first < rows; first += block) parts.push(await this.#decodeBlock(cache, step, first, block));
    return parts.length === 1 ? parts[0]! : joined(parts, block);
  }

  /** Rows [first, first + block), of which those beyond the step's are empty. */
  async #decodeBlock(cache: KeyValueCache, step: DecodeStep, first: number, block: number): Promise<DecodeResult> {
    const { decode } = await this.#sessions.open();
    const rows = Math.min(block, step.tokens.length - first);
    const temperatures = step.temperatures.slice(first, first + rows);
    const inverse = new Float32Array(block).fill(1);
    const greedy = new Uint8Array(block);
    temperatures.forEach((temperature, i) => {
      if (temperature > 0) inverse[i] = 1 / temperature;
      else greedy[i] = 1;
    });
    const tokens = new BigInt64Array(block);
    const uniform = new Float32Array(block);
    for (let i = 0; i < rows; i++) {
      tokens[i] = BigInt(step.tokens[first + i]!);
      uniform[i] = step.uniforms[first + i]!;
    }
    const { feeds, S } = this.#cacheFeeds(cache, first, block, 1);
    const fetch = ['token', 'logprob', ...(step.distributions ? ['logits'] : []), 'appended'];
    const outputs = await decode.run(
      { ...this.#model.views(this.#model.weights), ...feeds, tokens, inverse_temperature: inverse, greedy, uniform },
      { B: block, L: cache.length, S },
      { fetch },
    );
    for (let i = 0; i < rows; i++) cache.append(first + i, outputs.appended as Float32Array, i, 1);
    const vocabulary = this.#model.config.vocabSize;
    return {
      tokens: (outputs.token as BigInt64Array).subarray(0, rows),
      logprobs: (outputs.logprob as Float32Array).subarray(0, rows),
      distribution: row => {
        if (outputs.logits === undefined) throw new Error('the decode step was not asked for distributions');
        return logSoftmax((outputs.logits as Float32Array).subarray(row * vocabulary, (row + 1) * vocabulary));
      },
    };
  }

  /** Everything that the cached form reads beside tokens, for rows [first, first + count); those not in use are empty. */
  #cacheFeeds(cache: KeyValueCache, first: number, count: number, chunk: number) {
    const lengths = Array.from({ length: count }, (_, i) => (first + i < cache.rows ? cache.lengths[first + i]! : 0));
    const { feeds, S } = cachedPositions(this.#model, lengths, cache.length, chunk);
    const past: Record<string, TensorData> = feeds;
    cache.views(first, count).forEach((view, i) => {
      past[`${i % 2 === 0 ? 'past_key' : 'past_value'}.${i >> 1}`] = view;
    });
    return { feeds: past, S };
  }
}

function logSoftmax(logits: Float32Array): Float32Array {
  let highest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) highest = Math.max(highest, logit);
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - highest);
  const normalizer = highest + Math.log(total);
  return logits.map(logit => logit - normalizer);
}

/** Parts of `block` rows, the last perhaps shorter. */
function joined(parts: readonly DecodeResult[], block: number): DecodeResult {
  const count = parts.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const tokens = new BigInt64Array(count);
  const logprobs = new Float32Array(count);
  parts.forEach((part, i) => {
    tokens.set(part.tokens, i * block);
    logprobs.set(part.logprobs, i * block);
  });
  return { tokens, logprobs, distribution: row => parts[Math.floor(row / block)]!.distribution(row % block) };
}
