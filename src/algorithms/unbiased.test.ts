import { describe, expect, it } from 'vitest';
import { chain } from '../../tests/support/trajectories.ts';
import type { Trajectory } from '../episode/trajectory.ts';
import type { AdvantageInput, Estimator } from './advantages/contract.ts';
import { gae } from './advantages/gae.ts';
import { drGrpoAdvantage, groupNorm, leaveOneOut } from './advantages/group.ts';
import { reinforce } from './advantages/reinforce.ts';
import { remax } from './advantages/remax.ts';
import { tree } from './advantages/tree.ts';
import { createAlgorithm, lossInputs } from './algorithm.ts';
import { objective, POLICY_LOSSES } from './losses/index.ts';
import { evaluate } from './numeric.ts';

/**
 * A bandit of three arms and a softmax policy. Groups are few enough to enumerate, so the expected gradient of an
 * estimator is computed, not sampled, and is compared with the exact gradient of the expected reward.
 */
const rewards = [1, 0.2, -0.5];
const logits = [0.3, -0.4, 0.8];
const normaliser = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
const logprobs = logits.map(logit => logit - normaliser);
const policy = logprobs.map(Math.exp);
const value = policy.reduce((sum, p, arm) => sum + p * rewards[arm]!, 0);
/** ∂/∂θ_k E[R] = π_k·(R_k − E[R]) */
const exact = policy.map((p, arm) => p * (rewards[arm]! - value));

function* groupsOf(size: number): Generator<number[]> {
  if (size === 0) yield [];
  else for (const rest of groupsOf(size - 1)) for (const arm of rewards.keys()) yield [...rest, arm];
}

/** Expected descent direction over all groups of `size`, with on-policy samples. */
function expectedGradient(
  estimator: Estimator,
  size: number,
  type: string,
  extra: Partial<AdvantageInput> = {},
): number[] {
  const algorithm = createAlgorithm({ name: 'bandit', estimator, objective: objective(type) });
  const total = rewards.map(() => 0);
  for (const arms of groupsOf(size)) {
    const trajectories: Trajectory[] = arms.map(arm => chain({ turns: [{ tokens: 1, reward: rewards[arm]! }] }));
    const { advantages } = estimator.estimate({ trajectories, ...extra });
    const proximal = arms.map(arm => Float32Array.of(logprobs[arm]!));
    const { inputs } = lossInputs(algorithm, { trajectories, advantages, proximal });
    const { gradient } = evaluate(algorithm.loss, {
      sequences: arms.map(() => 1),
      logprobs: proximal.map(row => row[0]!),
      inputs: Object.fromEntries(Object.entries(inputs).map(([name, rows]) => [name, rows.map(row => row[0]!)])),
    });
    const probability = arms.reduce((product, arm) => product * policy[arm]!, 1);
    for (const [i, arm] of arms.entries()) {
      for (const k of total.keys()) {
        total[k]! -= probability * gradient.logprobs[i]! * ((k === arm ? 1 : 0) - policy[k]!);
      }
    }
  }
  return total;
}

const none = { mean: false, std: false };

describe('the expected gradient on a bandit', () => {
  it.each<[string, Estimator, number, number, Partial<AdvantageInput>]>([
    // name, estimator, group size, factor of the exact gradient
    ['reinforce, not whitened', reinforce({ whitening: none }), 1, 1, {}],
    ['rloo', leaveOneOut(), 2, 1, {}],
    ['rloo', leaveOneOut(), 4, 1, {}],
    ['remax', remax(), 1, 1, { greedyReturns: new Map([['g', -0.5]]) }],
    ['gae with some critic', gae({ whitening: none }), 1, 1, { values: [Float32Array.of(0.7)] }],
    // The mean contains the sample itself, which shrinks the gradient and does not turn it.
    ['dr_grpo', drGrpoAdvantage(), 2, 1 / 2, {}],
    ['dr_grpo', drGrpoAdvantage(), 4, 3 / 4, {}],
    ['tree, of chains', tree(), 3, 2 / 3, {}],
  ])('%s', (_, estimator, size, factor, extra) => {
    for (const [k, slope] of expectedGradient(estimator, size, 'reinforce', extra).entries()) {
      // Inputs are float32: about 1e-7.
      expect(slope).toBeCloseTo(factor * exact[k]!, 6);
    }
  });

  it.each(POLICY_LOSSES)('is the same under the loss %s while samples are on-policy', type => {
    for (const [k, slope] of expectedGradient(leaveOneOut(), 3, type).entries())
      expect(slope).toBeCloseTo(exact[k]!, 6);
  });

  it('points uphill, but elsewhere, when divided by the standard deviation of the group', () => {
    const direction = expectedGradient(groupNorm(), 3, 'reinforce');
    const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
    const cosine = dot(direction, exact) / Math.sqrt(dot(direction, direction) * dot(exact, exact));
    expect(cosine).toBeGreaterThan(0.9);
    expect(cosine).toBeLessThan(0.9999);
  });
});
