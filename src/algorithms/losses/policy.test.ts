import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluate } from '../numeric.ts';
import type { Loss } from '../ops.ts';
import { objective, POLICY_LOSSES } from './index.ts';
import { likelihoodLoss } from './likelihood.ts';
import { policyLoss } from './policy.ts';
import { ppoObjective } from './ppo.ts';

const losses: Record<string, Loss> = {
  likelihood: likelihoodLoss(),
  'ppo, dual clip': policyLoss({ objective: ppoObjective({ clip: [0.2, 0.28], dualClip: 3 }) }),
  'ppo, everything': policyLoss({
    objective: ppoObjective({ clip: [0.2, 0.28] }),
    kl: 'k3',
    entropy: 0.01,
    correction: true,
  }),
  'gspo, k2': policyLoss({ objective: objective('gspo', { clip: [0.2, 0.2] }), kl: 'k2', correction: true }),
};
for (const type of POLICY_LOSSES) losses[type] = policyLoss({ objective: objective(type) });

interface Batch {
  readonly sequences: readonly number[];
  readonly logprobs: number[];
  readonly entropy: number[];
  readonly inputs: Record<string, number[]>;
}

const finite = (min: number, max: number) => fc.double({ min, max, noNaN: true });

const anyBatch: fc.Arbitrary<Batch> = fc
  .array(
    fc.array(
      fc.record({
        logprob: finite(-4, -0.01),
        drift: finite(-1.5, 1.5),
        advantage: finite(-3, 3),
        weight: fc.oneof(fc.constant(0), finite(0.01, 1)),
        correction: fc.oneof(fc.constant(0), finite(0.1, 5)),
        reference: finite(-4, -0.01),
        entropy: finite(0, 3),
      }),
      { maxLength: 4 },
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map(rows => {
    const all = rows.flat();
    return {
      sequences: rows.map(row => row.length),
      logprobs: all.map(token => token.logprob),
      entropy: all.map(token => token.entropy),
      inputs: {
        old: all.map(token => token.logprob + token.drift),
        advantages: all.map(token => token.advantage),
        weights: all.map(token => token.weight),
        share: all.map(token => (token.weight > 0 ? 0.1 : 0)),
        correction: all.map(token => token.correction),
        reference: all.map(token => token.reference),
        beta: all.map(() => 0.05),
      },
    };
  });

function slice(batch: Batch, from: number, to: number): Batch {
  const before = batch.sequences.slice(0, from).reduce((sum, n) => sum + n, 0);
  const sequences = batch.sequences.slice(from, to);
  const after = before + sequences.reduce((sum, n) => sum + n, 0);
  return {
    sequences,
    logprobs: batch.logprobs.slice(before, after),
    entropy: batch.entropy.slice(before, after),
    inputs: Object.fromEntries(Object.entries(batch.inputs).map(([name, v]) => [name, v.slice(before, after)])),
  };
}

describe.each(Object.entries(losses))('%s', (_, loss) => {
  it('has the gradient of finite differences', () => {
    const h = 1e-6;
    const slopes = (batch: Batch, name: 'logprobs' | 'entropy', i: number) => {
      const at = (by: number) => evaluate(loss, { ...batch, [name]: batch[name].with(i, batch[name][i]! + by) }).loss;
      const [below, here, above] = [at(-h), at(0), at(h)];
      return [(here - below) / h, (above - here) / h] as const;
    };
    // A stopped gradient (CISPO's weight, GSPO's sequence mean) is by intention not the slope of the value.
    if (/cispo|gspo/.test(loss.key)) return;
    fc.assert(
      fc.property(anyBatch, batch => {
        const { gradient } = evaluate(loss, batch);
        for (const i of batch.logprobs.keys()) {
          for (const name of ['logprobs', 'entropy'] as const) {
            const analytic = gradient[name]?.[i];
            if (analytic === undefined) continue;
            const [left, right] = slopes(batch, name, i);
            // At a kink of a clip the two sides differ, and the gradient is one of them.
            const error = Math.min(Math.abs(analytic - left), Math.abs(analytic - right));
            // One-sided differences: error about h times the curvature (at most 100 here) plus 1e-16 / h.
            expect(error).toBeLessThan(1e-3);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('adds up over any split into micro-batches', () => {
    fc.assert(
      fc.property(anyBatch, fc.nat(4), (batch, cut) => {
        const at = Math.min(cut, batch.sequences.length);
        const whole = evaluate(loss, batch);
        const parts = [slice(batch, 0, at), slice(batch, at, batch.sequences.length)].map(part => evaluate(loss, part));
        // Sums of at most 16 float64 terms in another order.
        expect(parts[0]!.loss + parts[1]!.loss).toBeCloseTo(whole.loss, 9);
        for (const [name, metric] of Object.entries(whole.metrics)) {
          expect(parts[0]!.metrics[name]! + parts[1]!.metrics[name]!).toBeCloseTo(metric, 9);
        }
        const joined = parts.flatMap(part => [...part.gradient.logprobs]);
        for (const [i, value] of whole.gradient.logprobs.entries()) expect(joined[i]).toBeCloseTo(value, 9);
      }),
    );
  });

  it('ignores whatever a token of weight 0 holds', () => {
    const batch = slice(
      {
        sequences: [3],
        logprobs: [-1, Number.NaN, -2],
        entropy: [1, Number.NaN, 1],
        inputs: {
          old: [-1.1, Number.NaN, -1.9],
          advantages: [1, Number.POSITIVE_INFINITY, -1],
          weights: [0.5, 0, 0.5],
          share: [0.5, 0, 0.5],
          correction: [1, Number.NaN, 1],
          reference: [-1, Number.NaN, -1],
          beta: [0.1, 0.1, 0.1],
        },
      },
      0,
      1,
    );
    const { loss: value, metrics, gradient } = evaluate(loss, batch);
    for (const number of [value, ...Object.values(metrics), ...gradient.logprobs])
      expect(number).toSatisfy(Number.isFinite);
    expect(gradient.logprobs[1]).toBe(0);
  });

  it.each([100, -100])('stays finite when a log-ratio is %d nats', drift => {
    for (const advantage of [1, -1]) {
      const {
        loss: value,
        metrics,
        gradient,
      } = evaluate(loss, {
        sequences: [2],
        logprobs: [-1, -1],
        entropy: [1, 1],
        inputs: {
          old: [-1 - drift, -1],
          advantages: [advantage, advantage],
          weights: [0.5, 0.5],
          share: [0.5, 0.5],
          correction: [1, 1],
          reference: [-1 - drift, -1],
          beta: [0.1, 0.1],
        },
      });
      for (const number of [value, ...Object.values(metrics), ...gradient.logprobs]) {
        // Float32 holds up to 3.4e38; e^20 is what a bounded ratio can reach.
        expect(Math.abs(number)).toBeLessThan(1e9);
      }
    }
  });
});

describe('ppo', () => {
  const loss = policyLoss({ objective: ppoObjective({ clip: [0.2, 0.28], dualClip: 3 }) });
  const run = (ratio: number, advantage: number) =>
    evaluate(loss, {
      sequences: [1],
      logprobs: [Math.log(ratio)],
      inputs: { old: [0], advantages: [advantage], weights: [1], share: [1] },
    });

  it.each([
    // ratio, advantage, loss, gradient, clipped, bounded by the dual clip
    [1, 2, -2, -2, 0, 0],
    [1.1, 1, -1.1, -1.1, 0, 0],
    [1.5, 1, -1.28, 0, 1, 0],
    [0.5, 1, -0.5, -0.5, 0, 0],
    [0.5, -1, 0.8, 0, 1, 0],
    [1.5, -1, 1.5, 1.5, 0, 0],
    [4, -1, 3, 0, 0, 1],
  ])('ratio %d, advantage %d: loss %d, gradient %d', (ratio, advantage, value, slope, clipped, dual) => {
    const result = run(ratio, advantage);
    expect(result.loss).toBeCloseTo(value, 12);
    expect(result.gradient.logprobs[0]).toBeCloseTo(slope, 12);
    expect(result.metrics).toMatchObject({ ppo_clip_ratio: clipped, ppo_dual_clip_ratio: dual });
    expect(result.metrics.ppo_kl).toBeCloseTo(-Math.log(ratio), 12);
  });

  it('refuses ranges that make no sense', () => {
    expect(() => ppoObjective({ clip: [-0.1, 0.2] })).toThrow('lower clip range must be in [0, 1], got -0.1');
    expect(() => ppoObjective({ clip: [0.2, Number.NaN] })).toThrow('upper clip range');
    expect(() => ppoObjective({ clip: [0.2, 0.2], dualClip: 1 })).toThrow('dual clip must be > 1, got 1');
    expect(() => objective('pop')).toThrow("unknown policy loss 'pop'; there are ppo,");
    expect(() => objective('reinforce', { clip: [0.2, 0.2] })).toThrow('has no clip range');
    expect(() => policyLoss({ objective: objective('ppo'), entropy: Number.NaN })).toThrow('entropy coefficient');
  });
});

describe('keys', () => {
  it('differ whenever the losses differ', () => {
    const keys = Object.values(losses).map(loss => loss.key);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe('gspo', () => {
  it('weighs a sequence by the geometric mean of its ratios and gives each token its share of the gradient', () => {
    const loss = policyLoss({ objective: objective('gspo', { clip: [0.5, 0.5] }) });
    const result = evaluate(loss, {
      sequences: [2, 1],
      logprobs: [-1, -2, -3],
      inputs: { old: [-1.2, -1.9, -3], advantages: [2, 2, -1], weights: [0.25, 0.25, 0.5], share: [0.25, 0.25, 0.5] },
    });
    const ratio = Math.exp((0.2 - 0.1) / 2);
    expect(result.loss).toBeCloseTo(0.5 * (-2 * ratio) + 0.5 * 1, 12);
    expect(result.gradient.logprobs[0]).toBeCloseTo(-0.25 * 2 * ratio, 12);
    expect(result.gradient.logprobs[1]).toBeCloseTo(-0.25 * 2 * ratio, 12);
    expect(result.gradient.logprobs[2]).toBeCloseTo(0.5, 12);
  });
});

describe('cispo', () => {
  it('bounds the weight and keeps the gradient', () => {
    const loss = policyLoss({ objective: objective('cispo', { clip: [1, 1] }) });
    const result = evaluate(loss, {
      sequences: [1],
      logprobs: [-1],
      inputs: { old: [-3], advantages: [0.5], weights: [1], share: [1] },
    });
    expect(result.loss).toBeCloseTo(-2 * 0.5 * -1, 12);
    expect(result.gradient.logprobs[0]).toBeCloseTo(-1, 12);
    expect(result.metrics.ppo_clip_ratio).toBe(1);
  });
});
