import type { EpisodeGroup } from './groups.ts';
import { mean, sampledTokens } from './metrics.ts';

/**
 * Whether batches are made of short answers: those that are complete first are, and groups that are dropped as too
 * stale were long ones.
 */
export class LengthBias {
  readonly #window: number;
  #lengths: number[] = [];

  /** @param window groups that a batch is compared with */
  constructor(window: number) {
    this.#window = window;
  }

  /** A group has ended, whatever becomes of it. */
  ended(group: EpisodeGroup): void {
    this.#lengths.push(lengthOf(group));
    if (this.#lengths.length > this.#window) this.#lengths.shift();
  }

  /** `length_bias`: sampled tokens of an episode of the batch, over those of all groups that ended lately; 1 is none. */
  of(batch: readonly EpisodeGroup[]): Record<string, number> {
    const bias = mean(batch.map(lengthOf)) / mean(this.#lengths);
    return Number.isFinite(bias) ? { length_bias: bias } : {};
  }
}

function lengthOf({ episodes }: EpisodeGroup): number {
  return mean(episodes.map(sampledTokens));
}
