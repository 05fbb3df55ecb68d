import type { Loss } from '../ops.ts';

/** `sigmoid` subtracts the margin of a pair from the difference, `logexp` leaves it out. */
export const PAIRWISE_TYPES = ['sigmoid', 'logexp'] as const;
export type PairwiseType = (typeof PAIRWISE_TYPES)[number];

/**
 * Bradley-Terry loss of a reward model, the mean over pairs of −log σ(r_chosen − r_rejected − margin); `logexp` is
 * log(1 + exp(r_rejected − r_chosen)). Each sequence of a pair has one predicted position, the value there is its
 * reward. Inputs: 'direction' (1 for the chosen, −1 for the rejected sequence), 'margin' (of the pair, at both), 'weights'
 * (½ / pairs at both). Metrics: loss; acc, the share of pairs whose chosen answer has the larger reward; chosen_reward
 * and reject_reward, their means. A batch comes in pairs (LossBatch.together 2).
 * Source: Ouyang et al., Training language models to follow instructions, 2022, eq. 1; margin: Touvron et al., Llama 2,
 * 2023, eq. 2
 */
export function pairwiseLoss(options: { readonly type?: PairwiseType } = {}): Loss {
  const { type = 'sigmoid' } = options;
  if (!PAIRWISE_TYPES.includes(type)) {
    throw new Error(`the pairwise loss is one of ${PAIRWISE_TYPES.join(', ')}, got ${type}`);
  }
  return {
    key: `pairwise(${type})`,
    inputs: ['direction', 'margin', 'weights'],
    entropy: false,
    values: true,
    build(ops, context) {
      const input = (name: string) => context.inputs[name]!;
      const values = context.values!;
      const zero = ops.constant(0);
      const difference = ops.sequenceSum(ops.mul(input('direction'), values));
      const lead = type === 'sigmoid' ? ops.sub(difference, input('margin')) : difference;
      const loss = ops.sum(ops.mul(input('weights'), ops.softplus(ops.neg(lead))));
      // The weights of a pair add up to 1 / pairs, so that those of one side are half a mean.
      const isChosen = ops.less(zero, input('direction'));
      const mean = (chosen: boolean) => {
        const side = chosen ? ops.where(isChosen, values, zero) : ops.where(isChosen, zero, values);
        return ops.mul(ops.constant(2), ops.sum(ops.mul(input('weights'), side)));
      };
      return {
        loss,
        metrics: {
          acc: ops.sum(ops.mul(input('weights'), ops.less(zero, difference))),
          chosen_reward: mean(true),
          reject_reward: mean(false),
        },
      };
    },
  };
}
