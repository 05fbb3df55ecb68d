import type { FinishReason } from '../../episode/episode.ts';
import type { Generation } from '../contracts.ts';
import type { KeyValueCache } from './cache.ts';
import type { Device } from './device.ts';
import type { Model } from './model.ts';
import { PolicyGraphs } from './policy-graphs.ts';
import { PrefixCache } from './prefix-cache.ts';
import { emptyGeneration, finishReason, generationOf, newRow, type Row, type SamplerRequest, uniform } from './row.ts';
import { sampleTruncated, truncates } from './truncate.ts';

export interface SamplerOptions {
  readonly threads: number;
  readonly device?: Device | undefined;
  /** Sequences decoded together at most. */
  readonly maxRows: number;
  /** Tokens of prompts computed in one run at most; a longer prompt takes several before the next decode step. */
  readonly prefillTokens: number;
  /** Bytes of keys and values kept of finished sequences. */
  readonly prefixCacheBytes: number;
}

/** What the sampler reports while it runs. */
export interface SamplerEvents {
  token(id: number, token: number): void;
  finished(id: number, generation: Generation): void;
}

/** A prompt being computed, and the requests that wait for exactly this prompt. */
interface Prefill {
  readonly tokens: Int32Array;
  readonly requests: SamplerRequest[];
}

/**
 * The sampling half of the embedded engine: continuous batching. Between two decode steps finished rows leave and
 * waiting requests join; a prompt is computed up to its last token (once for all requests that share it, from the
 * longest cached prefix), and that last token is the row's first decode step. Nothing here looks at a clock: what
 * happens depends on the requests, their order and the moments (between steps) at which they arrive. While a step is
 * running only `submit` and `weightsChanged` may be called.
 */
export class OnnxSamplerCore {
  readonly #model: Model;
  readonly #options: SamplerOptions;
  readonly #events: SamplerEvents;
  readonly #graphs: PolicyGraphs;
  readonly #cache: KeyValueCache;
  readonly #prefixes: PrefixCache;
  readonly #waiting: SamplerRequest[] = [];
  /** In the order of the cache's rows. */
  readonly #rows: Row[] = [];
  /** Number of weight changes so far. */
  #epoch = 0;

  constructor(model: Model, options: SamplerOptions, events: SamplerEvents) {
    this.#model = model;
    this.#options = options;
    this.#events = events;
    this.#graphs = new PolicyGraphs(model, options);
    this.#cache = this.#graphs.newCache();
    this.#prefixes = new PrefixCache(options.prefixCacheBytes);
  }

  get busy(): boolean {
    return this.#waiting.length > 0 || this.#rows.length > 0;
  }

  submit(requests: readonly SamplerRequest[]): void {
    this.#waiting.push(...requests);
  }

  /** Ends a request with what it has; one that has ended already is left alone. */
  abort(id: number): void {
    const waiting = this.#waiting.findIndex(request => request.id === id);
    if (waiting >= 0) {
      this.#waiting.splice(waiting, 1);
      this.#events.finished(id, emptyGeneration());
    }
    const row = this.#rows.findIndex(({ request }) => request.id === id);
    if (row >= 0) this.#remove(row, 'abort');
  }

  abortAll(): void {
    for (const { id } of this.#waiting.splice(0)) this.#events.finished(id, emptyGeneration());
    while (this.#rows.length > 0) this.#remove(this.#rows.length - 1, 'abort');
  }

  /** Forgets every request, after an error that left rows half done. Returns their ids. */
  reset(): number[] {
    const ids = [...this.#rows.splice(0).map(({ request }) => request.id), ...this.#waiting.splice(0).map(r => r.id)];
    this.#cache.clear();
    this.#prefixes.clear();
    return ids;
  }

  /** The weights have changed: keys and values computed so far belong to the old ones. */
  weightsChanged(): void {
    this.#epoch += 1;
    this.#prefixes.clear();
  }

  /** Gives the memory of caches back. Only while idle. */
  sleep(): void {
    if (this.busy) {
      throw new Error('the sampler cannot sleep while requests are in flight: pause it with mode "abort" first');
    }
    this.#prefixes.clear();
    this.#cache.clear();
  }

  close(): Promise<void> {
    return this.#graphs.close();
  }

  /** Admits what fits, then advances every row by one token. */
  async step(): Promise<void> {
    await this.#admit();
    if (this.#rows.length > 0) await this.#decode();
  }

  /** Takes waiting requests while rows and the token budget last, and brings their prompts into the cache. */
  async #admit(): Promise<void> {
    const prefills = new Map<string, Prefill>();
    let budget = this.#options.prefillTokens;
    let rows = this.#rows.length;
    while (this.#waiting.length > 0 && rows < this.#options.maxRows) {
      const request = this.#waiting[0]!;
      const key = request.tokens.join();
      const known = prefills.get(key);
      if (known === undefined) {
        // At least one prompt is admitted, however long it is.
        if (prefills.size > 0 && request.tokens.length > budget) break;
        budget -= request.tokens.length;
        prefills.set(key, { tokens: request.tokens, requests: [request] });
      } else {
        known.requests.push(request);
      }
      this.#waiting.shift();
      rows += 1;
    }
    if (prefills.size > 0) await this.#prefill([...prefills.values()]);
  }

  /** Computes all but the last token of each prompt into a new row, and copies the row for those that share it. */
  async #prefill(prefills: readonly Prefill[]): Promise<void> {
    const first = this.#cache.rows;
    for (const { tokens } of prefills) {
      const row = this.#cache.addRow();
      const cached = this.#prefixes.longest(tokens, tokens.length - 1);
      if (cached !== undefined) this.#cache.insert(row, cached.sequence, cached.length);
      this.#cache.reserveLength(tokens.length + 1);
    }
    const add = (request: SamplerRequest) => this.#rows.push(newRow(request, this.#epoch));
    for (const { requests } of prefills) add(requests[0]!);
    for (const { requests } of prefills) requests.slice(1).forEach(add);
    const prompts = prefills.map(({ tokens }) => tokens.subarray(0, -1));
    for (;;) {
      const missing = Math.max(...prompts.map(({ length }, i) => length - this.#cache.lengths[first + i]!));
      if (missing === 0) break;
      const chunk = Math.max(1, Math.floor(this.#options.prefillTokens / prefills.length));
      await this.#graphs.prefill(this.#cache, prompts, { first, chunk: Math.min(missing, chunk) });
    }
    prefills.forEach(({ tokens, requests }, i) => {
      if (requests.length === 1) return;
      const shared = this.#cache.extract(first + i, tokens.length - 1);
      for (let copy = 1; copy < requests.length; copy++) this.#cache.insert(this.#cache.addRow(), shared);
    });
  }

  async #decode(): Promise<void> {
    const rows = this.#rows;
    const uniforms = rows.map(({ random }) => uniform(random));
    const { tokens, logprobs, distributions } = await this.#graphs.decode(this.#cache, {
      tokens: rows.map(({ next }) => next),
      temperatures: rows.map(({ request }) => request.params.temperature),
      uniforms,
      distributions: rows.some(({ request }) => truncates(request.params)),
    });
    const vocabulary = this.#model.config.vocabSize;
    rows.forEach((row, i) => {
      let token = Number(tokens[i]!);
      let logprob = logprobs[i]!;
      if (truncates(row.request.params)) {
        const logp = distributions!.subarray(i * vocabulary, (i + 1) * vocabulary);
        ({ token, logprob } = sampleTruncated(logp, row.request.params, uniforms[i]!));
      }
      this.#take(row, token, logprob);
    });
    this.#removeFinished();
  }

  #take(row: Row, token: number, logprob: number): void {
    if (!Number.isFinite(logprob)) {
      throw new Error(
        `the model gave token ${token} the log-probability ${logprob} at version ${this.#model.version}: its weights are not finite`,
      );
    }
    row.sampled.push(token);
    row.logprobs.push(logprob);
    row.versions.push(this.#model.version);
    row.next = token;
    if (row.request.streaming) this.#events.token(row.request.id, token);
  }

  #removeFinished(): void {
    // From the end, because the last row moves into a freed place.
    for (let i = this.#rows.length - 1; i >= 0; i--) {
      const row = this.#rows[i]!;
      const reason = finishReason(row, this.#model.config.maxPositions);
      if (reason !== undefined) this.#remove(i, reason);
    }
  }

  #remove(index: number, reason: FinishReason): void {
    const row = this.#rows[index]!;
    const { id, tokens } = row.request;
    // Keys and values that were begun with other weights are of no use to anyone else.
    if (row.epoch === this.#epoch) {
      const cached = this.#cache.lengths[index]!;
      const known = Int32Array.from([...tokens, ...row.sampled]).subarray(0, cached);
      this.#prefixes.store(known, () => this.#cache.extract(index, cached));
    }
    this.#cache.removeRow(index);
    const last = this.#rows.pop()!;
    if (last !== row) this.#rows[index] = last;
    this.#events.finished(id, generationOf(row, reason));
  }
}
