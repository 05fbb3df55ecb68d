import type { Ops } from '../ops.ts';
import type { PolicyObjective, PolicyTokens } from './policy.ts';
import { checkedClip, clippedSurrogate } from './ppo.ts';

/**
 * Group sequence policy optimisation: PPO's clipped surrogate with one ratio for the whole sequence,
 *
 *   s = exp( (1/n) Σ_t (log π − log π_old) ),
 *
 * in the form that keeps advantages per token: every token has the value of s and the gradient of its own log-prob
 * (s / n once the loss is averaged over the sequence; with equal advantages that is the gradient of s itself). The
 * sequence is one row of the batch. Use sequence aggregation.
 * Source: Zheng et al., Group Sequence Policy Optimization, eq. 5-7 and 4.3, https://arxiv.org/abs/2507.18071
 */
export function gspoObjective(options: { readonly clip: readonly [low: number, high: number] }): PolicyObjective {
  const [low, high] = checkedClip(options.clip);
  return {
    key: `gspo(${low},${high})`,
    build<T>(ops: Ops<T>, { logRatio, advantages, active }: PolicyTokens<T>) {
      const tokens = ops.max(ops.sequenceSum(active), ops.constant(1));
      const total = ops.sequenceSum(ops.where(active, logRatio, ops.constant(0)));
      const mean = ops.stopGradient(ops.div(total, tokens));
      const perToken = ops.add(mean, ops.sub(logRatio, ops.stopGradient(logRatio)));
      const { surrogate, clipped } = clippedSurrogate(ops, perToken, advantages, [low, high]);
      return { loss: ops.neg(surrogate), metrics: { ppo_clip_ratio: clipped, ppo_kl: ops.neg(logRatio) } };
    },
  };
}
