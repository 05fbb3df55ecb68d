import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { passAtK, passes } from './evaluate.ts';

describe('passAtK', () => {
  it('equals the share of k-subsets with a solved attempt in them', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.nat(9), fc.integer({ min: 1, max: 9 }), (n, c, k) => {
        fc.pre(c <= n && k <= n);
        let subsets = 0;
        let hits = 0;
        for (let set = 0; set < 1 << n; set++) {
          const members = Array.from({ length: n }, (_, i) => (set >> i) & 1);
          if (members.reduce((a, b) => a + b, 0) !== k) continue;
          subsets += 1;
          if (members.slice(0, c).includes(1)) hits += 1;
        }
        expect(passAtK(n, c, k)).toBeCloseTo(hits / subsets, 12);
      }),
    );
  });

  it('does not overflow and refuses nonsense', () => {
    expect(passAtK(10_000, 1, 5000)).toBeCloseTo(0.5, 9);
    expect(() => passAtK(4, 5, 1)).toThrow(/n 4, c 5, k 1/);
    expect(() => passAtK(4, 1, 5)).toThrow(/k 5/);
  });
});

it('takes parts that add up to 1 for a pass', () => {
  for (const parts of [3, 7, 10, 49]) {
    const score = Array.from({ length: parts }, () => 1 / parts).reduce((sum, part) => sum + part, 0);
    expect([passes(score, 1), passes(score - 1 / parts, 1)]).toEqual([true, false]);
  }
});
