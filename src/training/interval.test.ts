import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shareInterval } from './interval.ts';

describe('shareInterval', () => {
  // scipy.stats.binomtest(k, n).proportion_ci(method='wilson'), scipy 1.17.1.
  it.each([
    [0, 10, 0, 0.2775328],
    [8, 10, 0.49016247, 0.94331785],
    [10, 10, 0.7224672, 1],
    [37, 100, 0.28182361, 0.4677947],
    [1, 1000, 0.00017655, 0.00564256],
  ])('%i of %i lies in [%f, %f]', (successes, n, low, high) => {
    const interval = shareInterval(successes, n);
    expect(interval[0]).toBeCloseTo(low, 7);
    expect(interval[1]).toBeCloseTo(high, 7);
  });

  it('holds the share, inside [0, 1], and narrows with more trials', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(200), (a, b) => {
        const [successes, n] = [Math.min(a, b), Math.max(a, b, 1)];
        const [low, high] = shareInterval(successes, n);
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high).toBeLessThanOrEqual(1);
        expect(low).toBeLessThanOrEqual(successes / n + 1e-12);
        expect(high).toBeGreaterThanOrEqual(successes / n - 1e-12);
        const [low4, high4] = shareInterval(4 * successes, 4 * n);
        expect(high4 - low4).toBeLessThan(high - low);
      }),
    );
  });

  it('says nothing of no trials, and refuses impossible counts', () => {
    expect(shareInterval(0, 0)).toEqual([0, 1]);
    expect(() => shareInterval(3, 2)).toThrow('3 successes of 2 trials');
    expect(() => shareInterval(-1, 2)).toThrow('-1 successes');
  });
});
