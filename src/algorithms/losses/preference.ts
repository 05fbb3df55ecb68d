import type { Loss } from '../ops.ts';

export interface PreferenceOptions {
  /** Strength of the pull to the reference, > 0; 0.1 when not given. */
  readonly beta?: number | undefined;
  /** cDPO: the share of pairs that are labelled the wrong way round, in [0, 0.5); 0 when not given. */
  readonly labelSmoothing?: number | undefined;
  /** IPO's squared loss in place of the logistic one. */
  readonly ipo?: boolean | undefined;
  /** Weight of the negative log-likelihood of chosen answers, ≥ 0; 0 when not given. */
  readonly nllCoefficient?: number | undefined;
}

/**
 * Direct preference optimisation. With h = (log π_c − log π_ref,c) − (log π_r − log π_ref,r), each a sum over the answer,
 * the loss is the mean over pairs of
 * - DPO, cDPO: −(1 − s)·log σ(β·h) − s·log σ(−β·h), s the label smoothing
 * - IPO: (h − 1 / (2·β))²
 *
 * and nllCoefficient × the mean over chosen answers of the negative log-likelihood of their tokens' mean.
 * Inputs: 'reference' (log-probs under the reference), 'direction' (1 at tokens of the chosen answer, −1 at those of the
 * rejected one; divided by the answer's length h is a difference of means), 'weights' (at every token of a pair
 * 1 / (pairs × tokens of the pair)), 'chosen' and 'rejected' (1 / pairs at the tokens of that answer, 0 at others),
 * 'likelihood' (1 / (pairs × tokens) at the chosen answer's tokens, 0 at others). Metrics: chosen_reward and
 * reject_reward, the means of β·(log π − log π_ref) of an answer, always of its sum; acc, the share of pairs whose chosen
 * answer has the larger one; nll_loss where it counts.
 * A batch comes in pairs (LossBatch.together 2).
 * Sources: Rafailov et al., Direct Preference Optimization, 2023, eq. 7; label smoothing: Mitchell, A note on DPO with
 * noisy preferences, 2023; IPO: Azar et al., 2023, eq. 17; likelihood term: Pang et al., Iterative RPO, 2024, eq. 2
 */
export function preferenceLoss(options: PreferenceOptions = {}): Loss {
  const { beta = 0.1, labelSmoothing: smoothing = 0, ipo = false, nllCoefficient = 0 } = options;
  if (!(beta > 0 && Number.isFinite(beta))) throw new Error(`beta of a preference loss must be above 0, got ${beta}`);
  if (!(smoothing >= 0 && smoothing < 0.5)) {
    throw new Error(`the label smoothing of a preference loss must be in [0, 0.5), got ${smoothing}`);
  }
  if (ipo && smoothing > 0) {
    throw new Error(`label smoothing ${smoothing} has no meaning for IPO; leave one of the two out`);
  }
  if (!(nllCoefficient >= 0 && Number.isFinite(nllCoefficient))) {
    throw new Error(`the coefficient of the likelihood term must be ≥ 0, got ${nllCoefficient}`);
  }
  const withLikelihood = nllCoefficient > 0;
  return {
    key: `preference(beta=${beta},smoothing=${smoothing},ipo=${ipo},nll=${nllCoefficient})`,
    inputs: ['reference', 'direction', 'weights', 'chosen', 'rejected', ...(withLikelihood ? ['likelihood'] : [])],
    entropy: false,
    build(ops, { logprobs, inputs }) {
      const input = (name: string) => inputs[name]!;
      const number = (value: number) => ops.constant(value);
      const ratio = ops.sub(logprobs, input('reference'));
      const lead = ops.sequenceSum(ops.mul(input('direction'), ratio));
      const scaled = ops.mul(number(beta), lead);
      const miss = ops.sub(lead, number(1 / (2 * beta)));
      const wrong = ops.mul(number(1 - smoothing), ops.softplus(ops.neg(scaled)));
      const logistic = smoothing === 0 ? wrong : ops.add(wrong, ops.mul(number(smoothing), ops.softplus(scaled)));
      const pairs = ops.sum(ops.mul(input('weights'), ipo ? ops.mul(miss, miss) : logistic));
      const reward = (side: string) => ops.mul(number(beta), ops.sum(ops.mul(input(side), ratio)));
      const isChosen = ops.less(number(0), input('direction'));
      const gap = ops.sequenceSum(ops.where(isChosen, ratio, ops.neg(ratio)));
      const metrics = {
        acc: ops.sum(ops.mul(input('weights'), ops.less(number(0), gap))),
        chosen_reward: reward('chosen'),
        reject_reward: reward('rejected'),
      };
      if (!withLikelihood) return { loss: pairs, metrics };
      const likelihood = ops.neg(ops.sum(ops.mul(input('likelihood'), logprobs)));
      const loss = ops.add(pairs, ops.mul(number(nllCoefficient), likelihood));
      return { loss, metrics: { ...metrics, nll_loss: likelihood } };
    },
  };
}
