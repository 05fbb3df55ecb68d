import type { Ops } from '../ops.ts';
import { importanceRatio, type PolicyObjective, type PolicyTokens } from './policy.ts';

export interface SapoOptions {
  /** τ > 0 for tokens with a positive advantage, 1 in the paper. */
  readonly positive: number;
  /** τ > 0 for all others, 1.05 in the paper: they decay faster. */
  readonly negative: number;
}

/**
 * Soft adaptive policy optimisation: a smooth gate in place of the clip, with gradient 1 at ρ = 1,
 *
 *   ℓ = −(4 / τ)·σ( τ·(ρ − 1) )·A.
 *
 * Use sequence aggregation. Source: Gao et al., eq. 5-6, https://arxiv.org/abs/2511.20347
 */
export function sapoObjective({ positive, negative }: SapoOptions): PolicyObjective {
  for (const tau of [positive, negative]) {
    if (!(tau > 0 && tau < Number.POSITIVE_INFINITY)) throw new Error(`SAPO temperatures must be > 0, got ${tau}`);
  }
  return {
    key: `sapo(${positive},${negative})`,
    build<T>(ops: Ops<T>, { logRatio, advantages }: PolicyTokens<T>) {
      const rewarded = ops.less(ops.constant(0), advantages);
      const tau = ops.where(rewarded, ops.constant(positive), ops.constant(negative));
      const distance = ops.sub(importanceRatio(ops, logRatio), ops.constant(1));
      const gate = ops.div(ops.mul(ops.constant(4), ops.sigmoid(ops.mul(tau, distance))), tau);
      return { loss: ops.neg(ops.mul(gate, advantages)), metrics: { ppo_kl: ops.neg(logRatio) } };
    },
  };
}
