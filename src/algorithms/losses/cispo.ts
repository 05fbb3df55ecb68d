import type { Ops } from '../ops.ts';
import { importanceRatio, type PolicyObjective, type PolicyTokens } from './policy.ts';
import { checkedClip } from './ppo.ts';

/**
 * Clipped importance sampling weights: ℓ = −sg( clip(ρ, 1 − ε_low, 1 + ε_high) )·A·log π. The weight is bounded, but
 * every token keeps a gradient.
 * Source: MiniMax-M1, 3.1, https://arxiv.org/abs/2506.13585
 */
export function cispoObjective(options: { readonly clip: readonly [low: number, high: number] }): PolicyObjective {
  const [low, high] = checkedClip(options.clip);
  return {
    key: `cispo(${low},${high})`,
    build<T>(ops: Ops<T>, { logprobs, logRatio, advantages }: PolicyTokens<T>) {
      const ratio = ops.stopGradient(importanceRatio(ops, logRatio));
      const weight = ops.clamp(ratio, 1 - low, 1 + high);
      const distance = ops.abs(ops.sub(ratio, weight));
      return {
        loss: ops.neg(ops.mul(ops.mul(weight, advantages), logprobs)),
        metrics: { ppo_clip_ratio: ops.less(ops.constant(0), distance), ppo_kl: ops.neg(logRatio) },
      };
    },
  };
}
