import type { GenerateRequest, Generation, Learner, Sampler } from '../../src/engines/contracts.ts';
import type { VirtualClock } from './virtual-clock.ts';

export interface SimulatedSamplerOptions {
  readonly clock: VirtualClock;
  /** Answers decoded together; others wait for a place. */
  readonly rows: number;
  /** Milliseconds of a token, however many rows there are. */
  readonly perToken: number;
  /** Milliseconds of computing a token that is known: of prompts, and of answers whose cache is gone. */
  readonly perPrefilled: number;
  /** Milliseconds for which a change of weights stops everything. */
  readonly swap: number;
  /** Tokens of an answer. */
  readonly length: (key: string) => number;
}

interface Row {
  readonly request: GenerateRequest;
  readonly tokens: number;
  readonly end: (generation: Generation) => void;
  /** Tokens sampled before `since`, and under which versions. */
  versions: number[];
  /** When the token after those began. */
  since: number;
  /** Changes when a timer is no longer the row's. */
  turn: number;
}

/** An engine that takes time on a virtual clock and computes nothing. It keeps the contract of a real one. */
export class SimulatedSampler implements Sampler {
  readonly contextLength = 1_000_000;
  version = 0;
  /** Milliseconds times rows in which something was decoded. */
  busy = 0;
  readonly #options: SimulatedSamplerOptions;
  readonly #rows = new Set<Row>();
  readonly #waiting: Row[] = [];
  readonly #sampled = new Map<string, number>();
  #paused = false;

  constructor(options: SimulatedSamplerOptions) {
    this.#options = options;
  }

  generate(request: GenerateRequest): Promise<Generation> {
    return new Promise(end => {
      const done = this.#sampled.get(request.key) ?? 0;
      const tokens = Math.max(1, Math.min(request.params.maxTokens, this.#options.length(request.key) - done));
      this.#waiting.push({ request, tokens, end, versions: [], since: 0, turn: 0 });
      this.#admit();
    });
  }

  async publish({ version }: Pick<Learner, 'version'>): Promise<void> {
    const running = !this.#paused;
    if (running) await this.pause({ mode: 'keep' });
    await this.#options.clock.sleep(this.#options.swap);
    this.version = version;
    if (running) await this.resume();
  }

  async pause({ mode }: { mode: 'keep' | 'abort' }): Promise<void> {
    this.#paused = true;
    for (const row of this.#rows) this.#advance(row);
    if (mode === 'keep') return;
    for (const row of [...this.#rows]) {
      const { key } = row.request;
      this.#sampled.set(key, (this.#sampled.get(key) ?? 0) + row.versions.length);
      this.#finish(row, 'abort');
    }
    for (const row of this.#waiting.splice(0)) this.#finish(row, 'abort');
  }

  async resume(): Promise<void> {
    this.#paused = false;
    for (const row of this.#rows) this.#start(row, 0);
    this.#admit();
  }

  async sleep(): Promise<void> {
    // There are no caches.
  }
  async wake(): Promise<void> {
    // There are no caches.
  }
  async close(): Promise<void> {
    // There is nothing to give back.
  }

  #admit(): void {
    while (!this.#paused && this.#rows.size < this.#options.rows) {
      const row = this.#waiting.shift();
      if (row === undefined) return;
      this.#rows.add(row);
      // Answers that were interrupted are prefilled with what they had.
      const { key } = row.request;
      this.#start(row, (this.#sampled.get(key) ?? 0) * this.#options.perPrefilled);
    }
  }

  #start(row: Row, delay: number): void {
    const { clock, perToken } = this.#options;
    row.turn += 1;
    row.since = clock.now + delay;
    this.busy += delay;
    const { turn } = row;
    const left = row.tokens - row.versions.length;
    void clock.sleep(delay + left * perToken).then(() => {
      if (row.turn !== turn || this.#paused) return;
      this.#advance(row);
      this.#finish(row, 'stop');
      this.#admit();
    });
  }

  /** Notes the tokens that were sampled up to now. */
  #advance(row: Row): void {
    const { clock, perToken } = this.#options;
    const passed = Math.max(0, clock.now - row.since);
    const count = Math.min(row.tokens - row.versions.length, Math.round(passed / perToken + 1e-9));
    row.turn += 1;
    row.since = clock.now;
    this.busy += passed;
    for (let i = 0; i < count; i++) row.versions.push(this.version);
  }

  #finish(row: Row, finishReason: Generation['finishReason']): void {
    this.#rows.delete(row);
    const count = row.versions.length;
    row.end({
      tokens: new Int32Array(count),
      logprobs: new Float32Array(count),
      versions: Int32Array.from(row.versions),
      finishReason,
    });
  }
}
