import type { Ops } from '../ops.ts';
import { importanceRatio, type PolicyObjective, type PolicyTokens } from './policy.ts';

/**
 * The plain policy gradient, ℓ = −A·log π. Right for one update on fresh samples; add a correction otherwise.
 * Source: Williams, Simple statistical gradient-following algorithms, 1992
 */
export function reinforceObjective(): PolicyObjective {
  return {
    key: 'reinforce',
    build<T>(ops: Ops<T>, { logprobs, logRatio, advantages }: PolicyTokens<T>) {
      return { loss: ops.neg(ops.mul(advantages, logprobs)), metrics: { ppo_kl: ops.neg(logRatio) } };
    },
  };
}

/** Importance sampling without a clip, ℓ = −ρ·A: unbiased per token and unbounded. */
export function importanceSamplingObjective(): PolicyObjective {
  return {
    key: 'importance_sampling',
    build<T>(ops: Ops<T>, { logRatio, advantages }: PolicyTokens<T>) {
      const ratio = importanceRatio(ops, logRatio);
      return { loss: ops.neg(ops.mul(ratio, advantages)), metrics: { ppo_kl: ops.neg(logRatio) } };
    },
  };
}
