import { describe, expect, it } from 'vitest';
import { KL_ESTIMATORS, klController, klEstimate, klPenalty } from './kl.ts';
import { evaluate } from './numeric.ts';
import type { Loss } from './ops.ts';

const estimate = (estimator: (typeof KL_ESTIMATORS)[number], delta: number) => {
  const loss: Loss = {
    key: 'kl',
    inputs: [],
    entropy: false,
    build: (ops, { logprobs }) => ({ loss: ops.sum(klEstimate(ops, estimator, logprobs)), metrics: {} }),
  };
  const { loss: value, gradient } = evaluate(loss, { sequences: [1], logprobs: [delta], inputs: {} });
  return { value, slope: gradient.logprobs[0]! };
};

describe('KL estimators', () => {
  it('k1, k2 and k3 of δ = 0.5', () => {
    expect([...klPenalty('k1', [-1], [-1.5])]).toEqual([0.5]);
    expect([...klPenalty('k2', [-1], [-1.5])]).toEqual([0.125]);
    expect(klPenalty('k3', [-1], [-1.5])[0]).toBeCloseTo(Math.exp(-0.5) - 0.5, 7);
    expect(estimate('k1', 0.5)).toEqual({ value: 0.5, slope: 1 });
    expect(estimate('k2', 0.5)).toEqual({ value: 0.125, slope: 0.5 });
    expect(estimate('k3', 0.5).value).toBeCloseTo(Math.exp(-0.5) - 0.5, 12);
    expect(estimate('k3', 0.5).slope).toBeCloseTo(1 - Math.exp(-0.5), 12);
  });

  it('bounds the penalty of a token to ±10', () => {
    expect([...klPenalty('k1', [-1, -200], [-200, -1])]).toEqual([10, -10]);
    expect([...klPenalty('k3', [-200], [-1])]).toEqual([10]);
  });

  it.each(KL_ESTIMATORS)('%s as a loss is finite at ±100 nats and pulls towards the reference', name => {
    for (const delta of [100, -100]) {
      const { value, slope } = estimate(name, delta);
      expect(Number.isFinite(value)).toBe(true);
      expect(Number.isFinite(slope)).toBe(true);
      if (name !== 'k1') expect(Math.sign(slope)).toBe(Math.sign(delta));
    }
  });

  it('refuses arrays of different lengths', () => {
    expect(() => klPenalty('k1', [1], [1, 2])).toThrow('1 log-probs against 2');
  });
});

describe('klController', () => {
  it('leaves a fixed coefficient alone', () => {
    const controller = klController({ coefficient: 0.1 });
    controller.update(5, 100);
    expect(controller.value).toBe(0.1);
  });

  it('moves towards the target, by a fifth of n / horizon at most', () => {
    const controller = klController({ coefficient: 0.1, target: 0.5, horizon: 1000 });
    controller.update(5, 100);
    expect(controller.value).toBeCloseTo(0.1 * (1 + 0.2 * 0.1), 12);
    controller.update(0.45, 100);
    expect(controller.value).toBeCloseTo(0.1 * 1.02 * (1 - 0.1 * 0.1), 12);
    controller.update(0, 1_000_000);
    expect(controller.value).toBe(0);
  });

  it('carries its state', () => {
    const controller = klController({ coefficient: 0.1, target: 0.5 });
    controller.update(5, 100);
    const other = klController({ coefficient: 0.1, target: 0.5 });
    other.restore(controller.state());
    expect(other.value).toBe(controller.value);
  });

  it('refuses values that make no sense', () => {
    expect(() => klController({ coefficient: -0.1 })).toThrow('must be a number ≥ 0, got -0.1');
    expect(() => klController({ coefficient: 0.1, target: 0 })).toThrow('target must be > 0');
    expect(() => klController({ coefficient: 0.1, horizon: 0 })).toThrow('horizon must be > 0');
    expect(() => klController({ coefficient: 0.1, target: 1 }).update(Number.NaN, 1)).toThrow('measured KL is NaN');
  });
});
