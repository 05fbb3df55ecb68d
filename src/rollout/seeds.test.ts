import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seedOf, shuffledIndices } from './seeds.ts';

describe('seedOf', () => {
  it('never changes: old runs must repeat', () => {
    expect(seedOf(42, 'order', 0)).toBe(2540886356);
    expect(seedOf(42, 'sampling', 'task@0/3', 2)).toBe(1696294296);
  });

  it('tells apart what the stream is for, and where one part ends and the next begins', () => {
    const seeds = [
      seedOf(1, 'a', 'b'),
      seedOf(1, 'ab'),
      seedOf(1, 'a', 'b', ''),
      seedOf(2, 'a', 'b'),
      seedOf(1, 'a', 1),
      seedOf(1, 'a', '1'),
    ];
    expect(new Set(seeds).size).toBe(seeds.length);
  });

  it('is a 32-bit unsigned integer', () => {
    fc.assert(
      fc.property(fc.integer(), fc.string(), (run, part) => {
        const seed = seedOf(run, part);
        expect(seed).toBe(seed >>> 0);
      }),
    );
  });
});

describe('shuffledIndices', () => {
  it('is a permutation that depends on the seed alone', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 200 }), fc.nat(), (n, seed) => {
        const indices = shuffledIndices(n, seed);
        expect([...indices].sort((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
        expect(shuffledIndices(n, seed)).toEqual(indices);
      }),
    );
  });

  it('gives every order of three about equally often', () => {
    const counts = new Map<string, number>();
    for (let seed = 0; seed < 6000; seed++) {
      const order = shuffledIndices(3, seedOf(seed, 'order')).join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
    expect(counts.size).toBe(6);
    expect(chiSquare).toBeLessThan(20.5); // 5 degrees of freedom, p = 0.001; seeds are fixed
  });
});
