import type { Loss } from '../ops.ts';

/**
 * Supervised fine-tuning: −Σ weights·log π, with weights 1 / N the mean negative log-likelihood of N tokens.
 * Inputs: 'weights' (0 leaves a token out). Metric: gpt_loss, the same number.
 */
export function likelihoodLoss(): Loss {
  return {
    key: 'likelihood',
    inputs: ['weights'],
    entropy: false,
    build(ops, { logprobs, inputs }) {
      const weights = inputs.weights!;
      const zero = ops.constant(0);
      const counted = ops.where(ops.less(zero, weights), logprobs, zero);
      const loss = ops.neg(ops.sum(ops.mul(weights, counted)));
      return { loss, metrics: { gpt_loss: loss } };
    },
  };
}
