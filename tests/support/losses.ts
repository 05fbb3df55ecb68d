import fc from 'fast-check';
import { objective, POLICY_LOSSES } from '../../src/algorithms/losses/index.ts';
import { likelihoodLoss } from '../../src/algorithms/losses/likelihood.ts';
import { policyLoss } from '../../src/algorithms/losses/policy.ts';
import { ppoObjective } from '../../src/algorithms/losses/ppo.ts';
import { valueLoss } from '../../src/algorithms/losses/value.ts';
import type { Loss } from '../../src/algorithms/ops.ts';

/** Every loss there is, each option that changes its formula, and batches to evaluate them on. */

const ppo = ppoObjective({ clip: [0.2, 0.28] });
export const LOSSES: readonly Loss[] = [
  ...POLICY_LOSSES.map(type => policyLoss({ objective: objective(type) })),
  policyLoss({ objective: objective('gspo', { clip: [0.2, 0.2] }), kl: 'k2', correction: true }),
  policyLoss({ objective: objective('cispo', { clip: [0.3, 0.3] }), entropy: 0 }),
  policyLoss({ objective: ppoObjective({ clip: [0.2, 0.2], dualClip: 1.5 }) }),
  policyLoss({ objective: ppo, kl: 'k1', entropy: 0.01 }),
  policyLoss({ objective: ppo, kl: 'k3', entropy: 0.01, correction: true }),
  policyLoss({ objective: ppo, loglinear: { cap: 2 } }),
  likelihoodLoss(),
  valueLoss(),
  valueLoss({ clip: 0.2 }),
];

/** One value per position, all float32. */
export interface Positions {
  /** Number of positions of each sequence, ≥ 1. */
  readonly sequences: readonly number[];
  readonly logprobs: Float32Array;
  readonly entropy: Float32Array;
  readonly values: Float32Array;
  readonly inputs: Readonly<Record<string, Float32Array>>;
}

const between = (min: number, max: number) =>
  fc.float({ min: Math.fround(min), max: Math.fround(max), noNaN: true, noDefaultInfinity: true });

/** Ragged sequences; some tokens without weight, dropped by the correction, or exactly on-policy. */
export const anyPositions: fc.Arbitrary<Positions> = fc
  .array(
    fc.array(
      fc.record({
        logprob: between(-4, -0.01),
        drift: fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 4, arbitrary: between(-1.5, 1.5) }),
        reference: between(-4, -0.01),
        advantage: between(-3, 3),
        weight: fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 4, arbitrary: between(0.01, 1) }),
        correction: fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 4, arbitrary: between(0.1, 5) }),
        alpha: between(0, 1),
        entropy: between(0, 3),
        value: between(-2, 2),
        move: between(-0.5, 0.5),
        target: between(-2, 2),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map(rows => {
    const all = rows.flat();
    const vector = (of: (token: (typeof all)[number]) => number) => Float32Array.from(all, of);
    return {
      sequences: rows.map(row => row.length),
      logprobs: vector(token => token.logprob),
      entropy: vector(token => token.entropy),
      values: vector(token => token.value),
      inputs: {
        old: vector(token => token.logprob - token.drift),
        reference: vector(token => token.reference),
        advantages: vector(token => token.advantage),
        weights: vector(token => token.weight),
        share: vector(token => (token.weight > 0 ? 1 / 16 : 0)),
        correction: vector(token => token.correction),
        beta: vector(() => 0.05),
        alpha: vector(token => token.alpha),
        returns: vector(token => token.target),
        old_values: vector(token => token.value - token.move),
      },
    };
  });
