import { hash } from 'node:crypto';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/**
 * The seed of one random stream of a run: a 32-bit unsigned number that depends on the run's seed and on what the
 * stream is for (`seedOf(seed, 'sampling', episode, turn)`), and on nothing else, so that streams do not disturb one
 * another and no order of events matters.
 */
export function seedOf(runSeed: number, ...parts: readonly (string | number)[]): number {
  return hash('sha256', JSON.stringify([runSeed, ...parts]), 'buffer').readUInt32LE(0);
}

/** A permutation of 0 … n − 1 (Fisher–Yates). */
export function shuffledIndices(n: number, seed: number): Int32Array {
  const indices = Int32Array.from({ length: n }, (_, i) => i);
  const random = xoroshiro128plus(seed);
  for (let i = n - 1; i > 0; i--) {
    const j = uniformInt(random, 0, i);
    [indices[i], indices[j]] = [indices[j]!, indices[i]!];
  }
  return indices;
}
