import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CorrectionType, correct, mismatch } from './corrections.ts';

const rows = (...values: number[][]) => values.map(row => Float32Array.from(row));
const behaviour = rows([0, 0, 0], [0, 0]);
const proximal = rows([Math.log(2), Math.log(0.25), 0], [Math.log(8), Math.log(8)]);

function weights(type: CorrectionType, low: number, high: number): number[][] {
  return correct({ type, low, high }, behaviour, proximal).weights.map(row => [...row]);
}

describe('correct', () => {
  it.each<[CorrectionType, number, number, number[][]]>([
    [
      'tis',
      0.5,
      5,
      [
        [2, 0.5, 1],
        [5, 5],
      ],
    ],
    [
      'icepop',
      0.5,
      5,
      [
        [2, 0, 1],
        [0, 0],
      ],
    ],
    [
      'seq-mask-tis',
      0.5,
      5,
      [
        [2, 0.5, 1],
        [0, 0],
      ],
    ],
    [
      'sequence-tis',
      0,
      5,
      [
        [0.5, 0.5, 0.5],
        [5, 5],
      ],
    ],
    [
      'sequence-reject',
      0.4,
      5,
      [
        [1, 1, 1],
        [0, 0],
      ],
    ],
    [
      'geometric-reject',
      0.9,
      5,
      [
        [0, 0, 0],
        [0, 0],
      ],
    ],
    // δ² of 0, 0.48, 1.92 | 4.32, 4.32: the mean of the first three is 0.80.
    [
      'm2po',
      0,
      0.9,
      [
        [1, 1, 1],
        [0, 0],
      ],
    ],
    [
      'm2po',
      0,
      0.7,
      [
        [1, 0, 1],
        [0, 0],
      ],
    ],
  ])('%s in [%d, %d]', (type, low, high, expected) => {
    for (const [i, row] of weights(type, low, high).entries()) {
      for (const [t, weight] of row.entries()) expect(weight).toBeCloseTo(expected[i]![t]!, 5);
    }
  });

  it('keeps every weight at 1 on-policy', () => {
    for (const type of ['tis', 'icepop', 'seq-mask-tis', 'sequence-tis', 'geometric-reject', 'm2po'] as const) {
      const { weights: same, metrics } = correct({ type, low: 0.5, high: 5 }, behaviour, behaviour);
      expect(same.flatMap(row => [...row])).toEqual([1, 1, 1, 1, 1]);
      expect(metrics).toEqual({ correction_mean: 1, correction_ess: 1 });
    }
  });

  it('stays finite at ±100 nats', () => {
    const far = rows([100, -100, 0], [100, 100]);
    for (const type of ['tis', 'icepop', 'seq-mask-tis', 'sequence-tis', 'sequence-reject', 'm2po'] as const) {
      const { weights: bounded } = correct({ type, low: 0.5, high: 5 }, behaviour, far);
      for (const weight of bounded.flatMap(row => [...row])) expect(weight).toBeLessThanOrEqual(5);
    }
  });

  it('refuses thresholds out of order, unknown names and log-probs that cannot be compared', () => {
    expect(() => weights('tis', 5, 0.5)).toThrow('0 ≤ low ≤ high and high > 0, got 5 and 0.5');
    expect(() => weights('icepopp' as CorrectionType, 0, 1)).toThrow("unknown correction 'icepopp'; there are icepop,");
    expect(() => correct({ type: 'tis', low: 0, high: 1 }, behaviour, rows([0]))).toThrow(
      'sequence 0 has 3 behaviour log-probs and 1 proximal ones',
    );
    expect(() => correct({ type: 'tis', low: 0, high: 1 }, rows([0]), rows([Number.NaN]))).toThrow(
      'cannot be compared',
    );
  });
});

describe('mismatch', () => {
  it('measures the distance of the sampler from the learner', () => {
    const metrics = mismatch(behaviour, proximal);
    expect(metrics.vllm_kl).toBeCloseTo(-Math.log(2 * 0.25 * 8 * 8) / 5, 6);
    expect(metrics.mismatch_max).toBeCloseTo(Math.log(8), 6);
    expect(metrics.mismatch_k3).toBeGreaterThan(0);
    expect(metrics).toMatchObject({ 'ratio_below_0.5': 0.2, 'ratio_below_1.05': 0.2, ratio_from_2: 0.6 });
    const bins = Object.entries(metrics).filter(([name]) => name.startsWith('ratio_'));
    expect(bins.reduce((sum, [, share]) => sum + share, 0)).toBeCloseTo(1, 12);
  });

  it('is zero without a single token', () => {
    expect(mismatch([], [])).toMatchObject({ vllm_kl: 0, mismatch_max: 0 });
  });
});

it('m2po keeps the tokens that a stable sort by the second moment would', () => {
  const rows = fc.array(fc.array(fc.integer({ min: -3, max: 3 }), { maxLength: 6 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(rows, fc.double({ min: 0.01, max: 9, noNaN: true }), (deltas, threshold) => {
      const zeros = deltas.map(row => new Float32Array(row.length));
      const proximal = deltas.map(row => Float32Array.from(row));
      const { weights } = correct({ type: 'm2po', low: 0, high: threshold }, zeros, proximal);
      const sorted = deltas.flat().map((delta, index) => ({ index, moment: delta * delta }));
      sorted.sort((a, b) => a.moment - b.moment);
      let sum = 0;
      const kept = new Set<number>();
      for (const { index, moment } of sorted) {
        sum += moment;
        if (kept.size > 0 && sum / (kept.size + 1) > threshold) break;
        kept.add(index);
      }
      expect(weights.flatMap(row => [...row])).toEqual(deltas.flat().map((_, index) => (kept.has(index) ? 1 : 0)));
    }),
  );
});
