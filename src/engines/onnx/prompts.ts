import type { CachedSequence, KeyValueCache } from './cache.ts';
import type { PolicyGraphs } from './policy-graphs.ts';
import type { PrefixCache } from './prefix-cache.ts';
import type { SamplerRequest } from './row.ts';

/** A prompt being computed: all of it but the last token, which is the first decode step. */
interface Prompt {
  readonly key: string;
  readonly tokens: Int32Array;
  /** Those that wait for exactly this prompt. */
  requests: SamplerRequest[];
  /** What the prefix cache had of it. */
  readonly cached: { readonly sequence: CachedSequence; readonly length: number } | undefined;
}

/** Keys and values of a prompt, and who waits for them. */
export interface ComputedPrompt {
  readonly requests: readonly SamplerRequest[];
  readonly sequence: CachedSequence;
  /** Positions of the sequence that are the prompt's. */
  readonly length: number;
}

export interface PromptOptions {
  /** Tokens computed in one step at most, padding included. */
  readonly budget: number;
  /**
   * Makes keys and values depend, bit for bit, on nothing but the tokens before them: prompts are computed one at a
   * time, in chunks of so many tokens that begin at its multiples. Without it prompts share runs of any shape.
   */
  readonly grid?: number | undefined;
}

/**
 * Prompts on their way into the cache, in the order in which they came. They have a cache of their own, so that rows
 * being decoded are not as long as a prompt that is computed beside them.
 */
export class PromptQueue {
  readonly #graphs: PolicyGraphs;
  readonly #prefixes: PrefixCache;
  readonly #options: PromptOptions;
  readonly #cache: KeyValueCache;
  /** The first ones are, in this order, the rows of the cache. */
  #open: Prompt[] = [];
  #computed: ComputedPrompt[] = [];
  #stale = false;
  #promptTokens = 0;
  #cachedTokens = 0;

  constructor(graphs: PolicyGraphs, prefixes: PrefixCache, options: PromptOptions) {
    this.#graphs = graphs;
    this.#prefixes = prefixes;
    this.#options = options;
    this.#cache = graphs.newCache();
  }

  /** Number of requests that wait for a prompt. */
  get size(): number {
    return this.#open.reduce((sum, { requests }) => sum + requests.length, 0);
  }

  get statistics(): { readonly promptTokens: number; readonly cachedTokens: number } {
    return { promptTokens: this.#promptTokens, cachedTokens: this.#cachedTokens };
  }

  /** Takes a request whose prompt is there already, on its way, or fits into a step with those that are. */
  add(request: SamplerRequest): boolean {
    const cached = this.#place(request, this.#options.budget);
    if (cached === undefined) return false;
    this.#promptTokens += request.tokens.length;
    this.#cachedTokens += cached;
    return true;
  }

  /** Computes tokens within the budget of one step. Returns the prompts that are complete. */
  async step(): Promise<ComputedPrompt[]> {
    const { budget, grid } = this.#options;
    if (this.#stale) this.#restart();
    if (grid === undefined) {
      if (this.#open.length > 0)
        await this.#run(this.#open.length, Math.max(1, Math.floor(budget / this.#open.length)));
    } else {
      for (let left = budget; this.#open.length > 0 && left >= grid; left -= grid) await this.#run(1, grid);
    }
    return this.#stale ? [] : this.#computed.splice(0);
  }

  /** What is known of prompts is of no use any more: the next step begins again. */
  invalidate(): void {
    this.#stale = true;
  }

  /** Forgets a request. False when it is not here. */
  remove(id: number): boolean {
    const index = this.#open.findIndex(({ requests }) => requests.some(request => request.id === id));
    if (index < 0) return false;
    const prompt = this.#open[index]!;
    prompt.requests = prompt.requests.filter(request => request.id !== id);
    if (prompt.requests.length === 0) this.#drop(index);
    return true;
  }

  /** Forgets all requests and gives the memory back. Returns them. */
  clear(): SamplerRequest[] {
    this.#cache.clear();
    return this.#takeAll();
  }

  #takeAll(): SamplerRequest[] {
    const requests = [...this.#computed, ...this.#open].flatMap(prompt => prompt.requests);
    this.#open = [];
    this.#computed = [];
    return requests;
  }

  #restart(): void {
    this.#stale = false;
    while (this.#cache.rows > 0) this.#cache.removeRow(this.#cache.rows - 1);
    for (const request of this.#takeAll()) this.#place(request, Number.POSITIVE_INFINITY);
  }

  /** Returns how many tokens of the prompt need not be computed for it; undefined when `room` tokens are too few. */
  #place(request: SamplerRequest, room: number): number | undefined {
    const tokens = request.tokens.subarray(0, -1);
    const key = request.tokens.join();
    const known = this.#open.find(prompt => prompt.key === key);
    if (known !== undefined) {
      known.requests.push(request);
      return tokens.length;
    }
    const cached = this.#cached(tokens);
    const missing = tokens.length - (cached?.length ?? 0);
    if (missing === 0) {
      const sequence = cached?.sequence ?? { data: new Float32Array(0), length: 0 };
      this.#computed.push({ requests: [request], sequence, length: tokens.length });
      return tokens.length;
    }
    const waiting = this.#open.reduce((sum, prompt, row) => sum + this.#missing(prompt, row), 0);
    if (waiting > 0 && waiting + missing > room) return undefined;
    this.#open.push({ key, tokens, requests: [request], cached });
    return cached?.length ?? 0;
  }

  #cached(tokens: Int32Array): Prompt['cached'] {
    const found = this.#prefixes.longest(tokens, tokens.length);
    if (found === undefined || found.length === tokens.length) return found;
    const length = found.length - (found.length % (this.#options.grid ?? 1));
    return length === 0 ? undefined : { sequence: found.sequence, length };
  }

  #missing({ tokens, cached }: Prompt, row: number): number {
    return tokens.length - (row < this.#cache.rows ? this.#cache.lengths[row]! : (cached?.length ?? 0));
  }

  /** Computes the next tokens, `most` at most, of the first `count` prompts. */
  async #run(count: number, most: number): Promise<void> {
    const prompts = this.#open.slice(0, count);
    for (let row = this.#cache.rows; row < count; row++) {
      this.#cache.addRow();
      const { cached } = prompts[row]!;
      if (cached !== undefined) this.#cache.insert(row, cached.sequence, cached.length);
    }
    const missing = prompts.map((prompt, row) => this.#missing(prompt, row));
    const chunk = this.#options.grid ?? Math.min(most, Math.max(...missing));
    this.#cache.reserveLength(Math.max(...this.#cache.lengths.slice(0, count)) + chunk);
    await this.#graphs.prefill(
      this.#cache,
      prompts.map(({ tokens }) => tokens),
      { first: 0, chunk },
    );
    // The weights changed while this was computed.
    if (this.#stale) return;
    // From the end, because the last row moves into a freed place.
    for (let row = count - 1; row >= 0; row--) {
      const { tokens, requests } = this.#open[row]!;
      if (this.#cache.lengths[row]! < tokens.length) continue;
      const sequence = this.#cache.extract(row, tokens.length);
      this.#prefixes.store(tokens, () => sequence);
      this.#computed.push({ requests, sequence, length: tokens.length });
      this.#drop(row);
    }
  }

  #drop(index: number): void {
    const last = this.#cache.rows - 1;
    if (index > last) {
      this.#open.splice(index, 1);
      return;
    }
    this.#cache.removeRow(index);
    this.#open[index] = this.#open[last]!;
    this.#open.splice(last, 1);
  }
}
