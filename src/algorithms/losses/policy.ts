import { type KlEstimator, klEstimate } from '../kl.ts';
import type { Loss, LossContext, Ops } from '../ops.ts';

/**
 * A policy objective says what one token costs; `policyLoss` adds what all objectives have in common: off-policy
 * correction, KL against the reference, entropy, weights and metrics.
 */
export interface PolicyObjective {
  /** Names the objective and all of its options. */
  readonly key: string;
  /** Per-token cost, and per-token metrics whose means over all tokens of weight are reported. */
  build<T>(ops: Ops<T>, tokens: PolicyTokens<T>): { readonly loss: T; readonly metrics: Readonly<Record<string, T>> };
}

/** What an objective sees: one element per policy token, zero where a token has no weight. */
export interface PolicyTokens<T> {
  /** log π */
  readonly logprobs: T;
  /** log π − log π_old */
  readonly logRatio: T;
  readonly advantages: T;
  /** 1 where the token has a weight and no correction drops it. */
  readonly active: T;
}

export interface PolicyLossOptions {
  readonly objective: PolicyObjective;
  /** Adds β·KL(π ‖ π_ref) per token, reading inputs 'reference' and 'beta'. */
  readonly kl?: KlEstimator | undefined;
  /** Subtracts this times the entropy per token; 0 only reports it. */
  readonly entropy?: number | undefined;
  /** Multiplies the objective with the input 'correction', a weight ≥ 0 per token without gradient; 0 drops it. */
  readonly correction?: boolean | undefined;
  /**
   * Approximates the proximal policy between the behaviour policy ('old') and the present one instead of computing it:
   * log π_prox = log π_b + α·(sg(log π) − log π_b), with the input 'alpha' per token in [0, 1]; the behaviour weight
   * π_prox / π_b, at most `cap`, multiplies the objective. Excludes `correction`.
   */
  readonly loglinear?: { readonly cap: number } | undefined;
}

/** Log-ratios are bounded by this many nats before exp: e^20 is finite in float32 and far outside any clip range. */
const RATIO_BOUND = 20;

/** Importance ratio exp(log π − log π_old), safe at any log-ratio. */
export function importanceRatio<T>(ops: Ops<T>, logRatio: T): T {
  return ops.exp(ops.clamp(logRatio, -RATIO_BOUND, RATIO_BOUND));
}

/**
 * Σ_t weights_t·(correction_t·ℓ_t + beta_t·KL_t − entropy·H_t).
 *
 * Inputs per policy token: 'advantages'; 'old', the log-probs that the ratio is taken against; 'weights' (aggregate.ts);
 * 'share', weights of the token mean for metrics; and as declared by the options 'reference', 'beta', 'correction'.
 * Tokens of weight 0 are selected away before anything is computed from them, so what they hold cannot leak.
 *
 * Metrics: policy_loss; kl (token mean against the reference, when in the loss); entropy_loss (mean entropy);
 * correction_masked (share of tokens that a correction dropped); and the objective's own.
 */
export function policyLoss(options: PolicyLossOptions): Loss {
  const { objective, kl, entropy, correction = false, loglinear } = options;
  if (loglinear !== undefined && correction) {
    throw new Error(
      'the log-linear proximal policy brings its own behaviour weight; a correction would be a second one',
    );
  }
  if (loglinear !== undefined && !(loglinear.cap >= 1)) {
    throw new Error(`the cap of the behaviour weight must be ≥ 1, got ${loglinear.cap}`);
  }
  if (entropy !== undefined && !(entropy >= 0 && entropy < Number.POSITIVE_INFINITY)) {
    throw new Error(`the entropy coefficient must be a number ≥ 0, got ${entropy}`);
  }
  const inputs = ['advantages', 'old', 'weights', 'share'];
  if (kl !== undefined) inputs.push('reference', 'beta');
  if (correction) inputs.push('correction');
  if (loglinear !== undefined) inputs.push('alpha');
  const terms = [objective.key];
  if (kl !== undefined) terms.push(`kl=${kl}`);
  if (entropy !== undefined) terms.push(`entropy=${entropy}`);
  if (correction) terms.push('correction');
  if (loglinear !== undefined) terms.push(`loglinear=${loglinear.cap}`);

  return {
    key: terms.join('+'),
    inputs,
    entropy: entropy !== undefined,
    build<T>(ops: Ops<T>, context: LossContext<T>) {
      const { logprobs } = context;
      const input = (name: string) => context.inputs[name]!;
      const zero = ops.constant(0);
      const select = (condition: T, values: T) => ops.where(condition, values, zero);
      const counted = ops.less(zero, input('weights'));
      const active = correction ? select(counted, ops.less(zero, input('correction'))) : counted;
      const mean = (values: T) => ops.sum(ops.mul(input('share'), values));

      const drift = select(counted, ops.sub(logprobs, input('old')));
      // log π_prox − log π_b; zero when the proximal policy was computed, for then it is 'old'.
      const proximal = loglinear && ops.mul(input('alpha'), ops.stopGradient(drift));
      const tokens: PolicyTokens<T> = {
        logprobs: select(counted, logprobs),
        logRatio: proximal ? ops.sub(drift, proximal) : drift,
        advantages: select(counted, input('advantages')),
        active,
      };
      const { loss: perToken, metrics: objectiveMetrics } = objective.build(ops, tokens);
      let corrected = perToken;
      if (correction) corrected = ops.mul(select(active, input('correction')), perToken);
      if (loglinear && proximal) {
        corrected = ops.mul(ops.min(importanceRatio(ops, proximal), ops.constant(loglinear.cap)), perToken);
      }
      let loss = ops.sum(ops.mul(input('weights'), select(active, corrected)));

      const metrics: Record<string, T> = { policy_loss: loss };
      for (const [name, values] of Object.entries(objectiveMetrics)) metrics[name] = mean(values);
      if (correction) metrics.correction_masked = mean(ops.sub(counted, active));
      if (kl !== undefined) {
        const delta = select(counted, ops.sub(logprobs, input('reference')));
        const divergence = klEstimate(ops, kl, delta);
        metrics.kl = mean(divergence);
        loss = ops.add(loss, ops.sum(ops.mul(ops.mul(input('weights'), input('beta')), divergence)));
      }
      if (entropy !== undefined) {
        const values = select(counted, context.entropy!);
        metrics.entropy_loss = mean(values);
        if (entropy !== 0) {
          const bonus = ops.mul(ops.constant(entropy), ops.sum(ops.mul(input('weights'), values)));
          loss = ops.sub(loss, bonus);
        }
      }
      return { loss, metrics };
    },
  };
}
