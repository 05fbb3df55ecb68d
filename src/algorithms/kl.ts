import { unknownName } from './names.ts';
import type { Ops } from './ops.ts';

/**
 * Estimators of KL(π ‖ π_ref) from one sampled token, with δ = log π − log π_ref:
 *
 *   k1 = δ      k2 = δ² / 2      k3 = exp(−δ) − 1 + δ
 *
 * k1 is unbiased as a value and belongs in the reward. As a loss k2 has the right gradient in expectation, k3 is a
 * common choice, and k1 has none (its expected gradient is zero).
 * Source: J. Schulman, Approximating KL Divergence, http://joschu.net/blog/kl-approx.html
 */
export const KL_ESTIMATORS = ['k1', 'k2', 'k3'] as const;
export type KlEstimator = (typeof KL_ESTIMATORS)[number];

/** In the reward a token's estimate is bounded by ± this, so that one token cannot drown the task's reward. */
const REWARD_BOUND = 10;
/** Above this exponent k3 continues along its tangent: it stays finite and still pulls the policy back. */
const TANGENT_FROM = 10;

/**
 * Per-token estimate for the reward, clamped to [−10, 10].
 * @param logprobs [P] of the policy @param reference [P] of the reference
 */
export function klPenalty(
  estimator: KlEstimator,
  logprobs: ArrayLike<number>,
  reference: ArrayLike<number>,
): Float32Array {
  if (logprobs.length !== reference.length) {
    throw new Error(`${logprobs.length} log-probs against ${reference.length} of the reference`);
  }
  const penalty = new Float32Array(logprobs.length);
  for (let t = 0; t < penalty.length; t++) {
    const value = estimate(estimator, logprobs[t]! - reference[t]!);
    penalty[t] = Math.min(Math.max(value, -REWARD_BOUND), REWARD_BOUND);
  }
  return penalty;
}

function estimate(estimator: KlEstimator, delta: number): number {
  switch (estimator) {
    case 'k1':
      return delta;
    case 'k2':
      return (delta * delta) / 2;
    case 'k3':
      // expm1 keeps the small values that exp − 1 would cancel.
      return Math.expm1(-delta) + delta;
    default:
      throw unknownName('KL estimator', estimator, KL_ESTIMATORS);
  }
}

/**
 * Differentiable per-token estimate. It is not clamped, because a clamp removes the gradient exactly where the policy
 * has drifted furthest; k3 instead continues linearly beyond an exponent of 10.
 */
export function klEstimate<T>(ops: Ops<T>, estimator: KlEstimator, delta: T): T {
  switch (estimator) {
    case 'k1':
      return delta;
    case 'k2':
      return ops.mul(ops.constant(0.5), ops.mul(delta, delta));
    case 'k3': {
      const exponent = ops.neg(delta);
      const bound = ops.constant(TANGENT_FROM);
      const beyond = ops.max(ops.sub(exponent, bound), ops.constant(0));
      const exponential = ops.mul(ops.exp(ops.min(exponent, bound)), ops.add(ops.constant(1), beyond));
      return ops.add(ops.sub(exponential, ops.constant(1)), delta);
    }
    default:
      throw unknownName('KL estimator', estimator, KL_ESTIMATORS);
  }
}

/** The coefficient β of the KL term. `state` and `restore` carry it through a checkpoint. */
export interface KlController {
  readonly value: number;
  /** Takes the mean KL per token that was measured over `episodes` episodes. */
  update(kl: number, episodes: number): void;
  state(): { readonly value: number };
  restore(state: { readonly value: number }): void;
}

export interface KlControllerOptions {
  /** β at the start, ≥ 0. */
  readonly coefficient: number;
  /** KL per token to steer towards, > 0; without it β is fixed. */
  readonly target?: number | undefined;
  /** Episodes over which β may change by a factor of 1 ± 0.2. */
  readonly horizon?: number | undefined;
}

/**
 * Fixed β, or with `target` the proportional controller β ← β·(1 + clip(kl / target − 1, −0.2, 0.2)·n / horizon).
 * Source: Ziegler et al., Fine-Tuning Language Models from Human Preferences, 2.2, https://arxiv.org/abs/1909.08593
 */
export function klController(options: KlControllerOptions): KlController {
  const { coefficient, target, horizon = 10_000 } = options;
  if (!(coefficient >= 0 && coefficient < Number.POSITIVE_INFINITY)) {
    throw new Error(`the KL coefficient must be a number ≥ 0, got ${coefficient}`);
  }
  if (target !== undefined && !(target > 0)) throw new Error(`the KL target must be > 0, got ${target}`);
  if (!(horizon > 0)) throw new Error(`the KL horizon must be > 0 episodes, got ${horizon}`);
  let value = coefficient;
  return {
    get value() {
      return value;
    },
    update(kl, episodes) {
      if (target === undefined) return;
      if (!Number.isFinite(kl)) throw new Error(`the measured KL is ${kl}: the coefficient cannot follow it`);
      const error = Math.min(Math.max(kl / target - 1, -0.2), 0.2);
      // One update over many more episodes than the horizon must not turn the coefficient negative.
      value *= Math.max(0, 1 + (error * episodes) / horizon);
    },
    state: () => ({ value }),
    restore(state) {
      value = state.value;
    },
  };
}
