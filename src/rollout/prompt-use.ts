import type { Sampler, SamplerStatistics } from '../engines/contracts.ts';

const NONE: SamplerStatistics = { promptTokens: 0, cachedTokens: 0, evictions: 0 };

/** What became of prompts in a sampler that tells (docs/metrics.md). */
export class PromptUse {
  readonly #sampler: Pick<Sampler, 'statistics'>;
  #before = NONE;

  constructor(sampler: Pick<Sampler, 'statistics'>) {
    this.#sampler = sampler;
  }

  /** `rollout/…` since the last call; nothing where the sampler does not tell. */
  async take(): Promise<Record<string, number>> {
    const now = await this.#sampler.statistics?.();
    if (now === undefined) return {};
    const before = this.#before;
    this.#before = now;
    const promptTokens = now.promptTokens - before.promptTokens;
    return {
      'rollout/prompt_tokens': promptTokens,
      // A batch that waiting groups fill asks for no prompt, and has no rate.
      ...(promptTokens > 0
        ? { 'rollout/prefix_hit_rate': (now.cachedTokens - before.cachedTokens) / promptTokens }
        : {}),
      'rollout/prefix_evictions': now.evictions - before.evictions,
    };
  }
}
