import type { Ops } from '../ops.ts';
import { importanceRatio, type PolicyObjective, type PolicyTokens } from './policy.ts';

export interface PpoOptions {
  /** [ε_low, ε_high]: the ratio's gradient is cut outside [1 − ε_low, 1 + ε_high]. Unequal values are clip-higher. */
  readonly clip: readonly [low: number, high: number];
  /** c > 1 bounds the loss of a token with a negative advantage by c·|A|. */
  readonly dualClip?: number | undefined;
}

/**
 * Clipped surrogate, with ρ = exp(log π − log π_old):
 *
 *   ℓ = −min(ρ·A, clip(ρ, 1 − ε_low, 1 + ε_high)·A),   and with dual clip, where A < 0:   ℓ ← min(ℓ, −c·A)
 *
 * Metrics: ppo_clip_ratio, share of tokens whose clipped value is the smaller; ppo_kl, mean of log π_old − log π;
 * ppo_dual_clip_ratio, share of tokens that the dual clip bounds.
 * Sources: Schulman et al., Proximal Policy Optimization, eq. 7, https://arxiv.org/abs/1707.06347; clip-higher: Yu et
 * al., DAPO, 3.1, https://arxiv.org/abs/2503.14476; dual clip: Ye et al., eq. 5, https://arxiv.org/abs/1912.09729
 */
export function ppoObjective(options: PpoOptions): PolicyObjective {
  const { dualClip } = options;
  const [low, high] = checkedClip(options.clip);
  if (dualClip !== undefined && !(dualClip > 1)) throw new Error(`dual clip must be > 1, got ${dualClip}`);
  return {
    key: `ppo(${low},${high}${dualClip === undefined ? '' : `,dual=${dualClip}`})`,
    build<T>(ops: Ops<T>, { logRatio, advantages }: PolicyTokens<T>) {
      const { surrogate, clipped } = clippedSurrogate(ops, logRatio, advantages, [low, high]);
      const metrics: Record<string, T> = { ppo_clip_ratio: clipped, ppo_kl: ops.neg(logRatio) };
      if (dualClip === undefined) return { loss: ops.neg(surrogate), metrics };

      const floor = ops.mul(ops.constant(dualClip), advantages);
      const negative = ops.less(advantages, ops.constant(0));
      metrics.ppo_dual_clip_ratio = ops.where(negative, ops.less(surrogate, floor), ops.constant(0));
      return { loss: ops.neg(ops.where(negative, ops.max(surrogate, floor), surrogate)), metrics };
    },
  };
}

/** min(ρ·A, clip(ρ)·A), and 1 where the clipped value is the smaller. */
export function clippedSurrogate<T>(
  ops: Ops<T>,
  logRatio: T,
  advantages: T,
  [low, high]: readonly [low: number, high: number],
): { readonly surrogate: T; readonly clipped: T } {
  const ratio = importanceRatio(ops, logRatio);
  const plain = ops.mul(ratio, advantages);
  const bounded = ops.mul(ops.clamp(ratio, 1 - low, 1 + high), advantages);
  return { surrogate: ops.min(plain, bounded), clipped: ops.less(bounded, plain) };
}

/** @throws Error unless 0 ≤ low ≤ 1 and high ≥ 0. */
export function checkedClip(clip: readonly [low: number, high: number]): readonly [low: number, high: number] {
  const [low, high] = clip;
  if (!(low >= 0 && low <= 1)) throw new Error(`the lower clip range must be in [0, 1], got ${low}`);
  if (!(high >= 0 && high < Number.POSITIVE_INFINITY)) {
    throw new Error(`the upper clip range must be a number ≥ 0, got ${high}`);
  }
  return clip;
}
