import type { FinishReason } from '../../episode/episode.ts';
import { readTokenBytes, type TokenBytes } from '../../text/token-bytes.ts';
import type { Generation, SamplerStatistics, TopLogprobs } from '../contracts.ts';
import { type DecodeBatch, DecodeBatches, ISOLATED_ROWS } from './decode-batch.ts';
import type { Device } from './device.ts';
import type { SamplingDType } from './dtype.ts';
import type { Model } from './model.ts';
import { PolicyGraphs } from './policy-graphs.ts';
import { PrefixCache } from './prefix-cache.ts';
import { type ComputedPrompt, PromptQueue } from './prompts.ts';
import {
  emptyGeneration,
  finishReason,
  generationOf,
  newRow,
  type Row,
  type SamplerRequest,
  take,
  uniform,
} from './row.ts';
import { draw, EVERYTHING, topLogprobs, truncate, truncates } from './truncate.ts';

export interface SamplerOptions {
  readonly threads: number;
  readonly device?: Device | undefined;
  /** Sequences decoded together at most. */
  readonly maxRows: number;
  /** Tokens of prompts computed in one step at most, before every row that is ready is decoded by one token. */
  readonly prefillTokens: number;
  /** Bytes of keys and values kept of finished sequences. */
  readonly prefixCacheBytes: number;
  /** What a request gets does not depend, in any bit, on the requests beside it; slower (docs/engine.md). */
  readonly deterministic?: boolean | undefined;
  /** What matrices are multiplied in; float32 when not given. */
  readonly dtype?: SamplingDType | undefined;
}

/** What the sampler reports while it runs. */
export interface SamplerEvents {
  token(id: number, token: number): void;
  finished(id: number, generation: Generation): void;
}

/** Tokens of a run of a prompt where requests must not depend on each other. */
const PROMPT_GRID = 64;

/**
 * The sampling half of the embedded engine: continuous batching. A step takes in waiting requests, computes a bounded
 * number of prompt tokens (once for all requests that share a prompt, from the longest cached prefix; the last token of
 * a prompt is its row's first decode step) and advances every row that is ready by one token. Nothing here looks at a
 * clock: what happens depends on the requests, their order and the moments (between steps) at which they arrive. While
 * a step is running only `submit` and `weightsChanged` may be called.
 */
export class OnnxSamplerCore {
  readonly #model: Model;
  readonly #options: SamplerOptions;
  readonly #events: SamplerEvents;
  readonly #tokenBytes: () => TokenBytes;
  readonly #graphs: PolicyGraphs;
  readonly #prefixes: PrefixCache;
  readonly #prompts: PromptQueue;
  readonly #batches: DecodeBatches;
  readonly #waiting: SamplerRequest[] = [];
  /** Number of weight changes so far. */
  #epoch = 0;

  /** @param tokenBytes the tokenizer's table, asked for by the first request with stop strings */
  constructor(
    model: Model,
    options: SamplerOptions,
    events: SamplerEvents,
    tokenBytes: () => TokenBytes = () => readTokenBytes(model.directory),
  ) {
    const { maxRows: _, prefillTokens: budget, prefixCacheBytes, deterministic = false } = options;
    this.#model = model;
    this.#options = options;
    this.#events = events;
    this.#tokenBytes = tokenBytes;
    this.#graphs = new PolicyGraphs(model, options);
    this.#prefixes = new PrefixCache(prefixCacheBytes);
    const grid = deterministic ? Math.min(PROMPT_GRID, budget) : undefined;
    this.#prompts = new PromptQueue(this.#graphs, this.#prefixes, { budget, grid });
    this.#batches = new DecodeBatches(() => this.#graphs.newCache(), deterministic);
  }

  get busy(): boolean {
    return this.#waiting.length + this.#prompts.size + this.#batches.size > 0;
  }

  get statistics(): SamplerStatistics {
    return { ...this.#prompts.statistics, evictions: this.#prefixes.evictions };
  }

  submit(requests: readonly SamplerRequest[]): void {
    this.#waiting.push(...requests);
  }

  /** Ends a request with what it has; one that has ended already is left alone. */
  abort(id: number): void {
    const waiting = this.#waiting.findIndex(request => request.id === id);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    if (waiting >= 0 || this.#prompts.remove(id)) this.#events.finished(id, emptyGeneration());
    const found = this.#batches.find(id);
    if (found) this.#finish(found.batch, found.index, 'abort');
  }

  abortAll(): void {
    const unbegun = [...this.#waiting.splice(0), ...this.#prompts.clear()];
    for (const { id } of unbegun) this.#events.finished(id, emptyGeneration());
    for (const batch of this.#batches.active) {
      while (batch.rows.length > 0) this.#finish(batch, batch.rows.length - 1, 'abort');
    }
  }

  /** Forgets every request, after an error that left rows half done. Returns their ids. */
  reset(): number[] {
    const rows = this.#batches.active.flatMap(batch => batch.rows.map(({ request }) => request));
    const ids = [...rows, ...this.#prompts.clear(), ...this.#waiting.splice(0)].map(({ id }) => id);
    this.#batches.clear();
    this.#prefixes.clear();
    return ids;
  }

  /** The weights have changed: keys and values computed so far belong to the old ones. */
  weightsChanged(): void {
    this.#epoch += 1;
    this.#graphs.weightsChanged();
    this.#prompts.invalidate();
    this.#prefixes.clear();
  }

  /** Gives the memory of caches back. Only while idle. */
  sleep(): void {
    if (this.busy) {
      throw new Error('the sampler cannot sleep while requests are in flight: pause it with mode "abort" first');
    }
    this.#prefixes.clear();
    this.#prompts.clear();
    this.#batches.clear();
  }

  close(): Promise<void> {
    return this.#graphs.close();
  }

  /** Computes prompt tokens within the budget, then advances every row that is ready by one token. */
  async step(): Promise<void> {
    this.#admit();
    this.#begin(await this.#prompts.step());
    for (const batch of this.#batches.active) await this.#decode(batch);
    this.#batches.regroup();
  }

  /** Takes waiting requests, in order, while there are rows and their prompts fit into a step. */
  #admit(): void {
    let rows = this.#prompts.size + this.#batches.size;
    while (this.#waiting.length > 0 && rows < this.#options.maxRows && this.#prompts.add(this.#waiting[0]!)) {
      this.#waiting.shift();
      rows += 1;
    }
  }

  #begin(prompts: readonly ComputedPrompt[]): void {
    if (prompts.length === 0) return;
    const rows = prompts.reduce((sum, { requests }) => sum + requests.length, 0);
    this.#batches.expect(rows, Math.max(...prompts.map(({ length }) => length)));
    for (const { requests, sequence, length } of prompts) {
      for (const request of requests) {
        const tokenBytes = request.params.stopStrings.length > 0 ? this.#tokenBytes() : undefined;
        this.#batches.add(newRow(request, this.#epoch, tokenBytes), sequence, length);
      }
    }
  }

  async #decode(batch: DecodeBatch): Promise<void> {
    const { rows, cache } = batch;
    const uniforms = rows.map(({ random }) => uniform(random));
    const { tokens, logprobs, distribution } = await this.#graphs.decode(cache, {
      tokens: rows.map(({ next }) => next),
      temperatures: rows.map(({ request }) => request.params.temperature),
      uniforms,
      distributions: rows.some(({ request }) => truncates(request.params) || request.params.topLogprobs > 0),
      block: this.#options.deterministic ? ISOLATED_ROWS : undefined,
    });
    rows.forEach((row, i) => {
      const { params } = row.request;
      let drawn = { token: Number(tokens[i]!), logprob: logprobs[i]! };
      let top: TopLogprobs | undefined;
      if (truncates(params) || params.topLogprobs > 0) {
        const logp = distribution(i);
        const kept = truncates(params) ? truncate(logp, params) : EVERYTHING;
        if (kept !== EVERYTHING) drawn = draw(logp, kept, uniforms[i]!);
        if (params.topLogprobs > 0) top = topLogprobs(logp, params.topLogprobs, kept);
      }
      this.#take(row, drawn.token, drawn.logprob, top);
    });
    // From the end, because the last row moves into a freed place.
    for (let i = rows.length - 1; i >= 0; i--) {
      const reason = finishReason(rows[i]!, this.#model.config.maxPositions);
      if (reason !== undefined) this.#finish(batch, i, reason);
    }
  }

  #take(row: Row, token: number, logprob: number, top: TopLogprobs | undefined): void {
    const { version } = this.#model;
    if (!Number.isFinite(logprob)) {
      throw new Error(
        `the model gave token ${token} the log-probability ${logprob} at version ${version}: its weights are not finite`,
      );
    }
    take(row, token, logprob, version, top);
    if (row.request.streaming) this.#events.token(row.request.id, token);
  }

  #finish(batch: DecodeBatch, index: number, reason: FinishReason): void {
    const row = batch.rows[index]!;
    const { id, tokens } = row.request;
    // Keys and values that were begun with other weights are of no use to anyone else. Those of decoding differ in
    // their last bits from those of a prompt: where that matters, only prompts are kept.
    if (row.epoch === this.#epoch && !this.#options.deterministic) {
      const cached = batch.cache.lengths[index]!;
      const known = Int32Array.from([...tokens, ...row.sampled]).subarray(0, cached);
      this.#prefixes.store(known, () => batch.cache.extract(index, cached));
    }
    this.#batches.remove(batch, index);
    this.#events.finished(id, generationOf(row, reason));
  }
}
