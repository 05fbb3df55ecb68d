import { seedOf, shuffledIndices } from '../rollout/seeds.ts';
import type { Experience } from './experience.ts';

export interface BatchOptions {
  /** Episodes per optimizer update; undefined: all of them. */
  readonly batchSize: number | undefined;
  /** Passes over the experience. */
  readonly epochs: number;
  /** Seeds the shuffles of this step. */
  readonly seed: number;
}

/**
 * Rows of each update: episodes in batches of nearly equal size, none larger than `batchSize`, all rows of an episode
 * together, in a new order in every pass. With one update a pass the order is left as it is.
 */
export function* miniBatches(
  { trajectories }: Pick<Experience, 'trajectories'>,
  { batchSize, epochs, seed }: BatchOptions,
): Generator<number[]> {
  const episodes = new Map<string, number[]>();
  trajectories.forEach(({ episode }, row) => {
    const rows = episodes.get(episode);
    if (rows === undefined) episodes.set(episode, [row]);
    else rows.push(row);
  });
  const all = [...episodes.values()];
  const count = updatesPerPass(all.length, batchSize);
  for (let pass = 0; pass < epochs; pass++) {
    const order = count > 1 ? [...shuffledIndices(all.length, seedOf(seed, 'pass', pass))] : [...all.keys()];
    for (let b = 0; b < count; b++) {
      const [start, end] = [b, b + 1].map(edge => Math.round((edge * all.length) / count));
      yield order.slice(start, end).flatMap(i => all[i]!);
    }
  }
}

/** Optimizer updates in one pass over so many episodes. */
export function updatesPerPass(episodes: number, batchSize: number | undefined): number {
  return batchSize === undefined ? Math.min(1, episodes) : Math.ceil(episodes / batchSize);
}
