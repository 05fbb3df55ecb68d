import { describe, expect, it } from 'vitest';
import { evaluate } from '../numeric.ts';
import { explainedVariance, valueLoss } from './value.ts';

function run(values: number[], clip?: number) {
  return evaluate(valueLoss({ clip }), {
    sequences: [values.length],
    logprobs: values.map(() => Number.NaN),
    values,
    inputs: {
      returns: values.map(() => 1),
      old_values: values.map(() => 0),
      weights: values.map(() => 1 / values.length),
      share: values.map(() => 1 / values.length),
    },
  });
}

describe('valueLoss', () => {
  it('is half the mean squared error', () => {
    const { loss, gradient, metrics } = run([0, 2, 0.5]);
    expect(loss).toBeCloseTo((0.5 * (1 + 1 + 0.25)) / 3, 12);
    expect([...gradient.values!].map(g => g * 3)).toEqual([-1, 1, -0.5]);
    expect(metrics).toMatchObject({ critic_loss: loss, values: expect.closeTo(2.5 / 3, 12) });
    expect([...gradient.logprobs]).toEqual([0, 0, 0]);
  });

  it('does not reward moving a value further than the clip', () => {
    const { loss, gradient, metrics } = run([0.8], 0.5);
    // Bounded to 0.5, whose error of 0.25 is larger than 0.04: it counts, and has no gradient.
    expect(loss).toBeCloseTo(0.125, 12);
    expect(gradient.values![0]).toBe(0);
    expect(metrics.value_clip_ratio).toBe(1);
    expect(run([1.8], 0.5).gradient.values![0]).toBeCloseTo(0.8, 12);
  });

  it('has the gradient of finite differences', () => {
    const h = 1e-6;
    for (const value of [-0.7, -0.2, 0.3, 0.9, 1.7]) {
      const slope = (run([value + h], 0.5).loss - run([value - h], 0.5).loss) / (2 * h);
      // A quadratic: central differences are exact up to rounding, 1e-16 / h.
      expect(run([value], 0.5).gradient.values![0]).toBeCloseTo(slope, 8);
    }
  });

  it('refuses a clip that is none', () => {
    expect(() => valueLoss({ clip: 0 })).toThrow('must be > 0, got 0');
  });
});

describe('explainedVariance', () => {
  const returns = [Float32Array.of(1, 2), Float32Array.of(3)];
  const share = [Float32Array.of(0.25, 0.25), Float32Array.of(0.5)];

  it('is 1 for a perfect critic, 0 for a constant one, and not a number without variation', () => {
    expect(explainedVariance(returns, returns, share)).toBe(1);
    expect(explainedVariance([Float32Array.of(5, 5), Float32Array.of(5)], returns, share)).toBeCloseTo(0, 12);
    expect(explainedVariance(returns, [Float32Array.of(1, 1), Float32Array.of(1)], share)).toBeNaN();
  });
});
