import { attemptsOf } from '../attempts.ts';
import { tokenReturns } from '../returns.ts';
import { type AdvantageInput, type AdvantageOutput, checkedCredit, type Estimator } from './contract.ts';
import { groupMetrics, groupsOf } from './group.ts';
import { type WhitenedOptions, whiten } from './whiten.ts';

/**
 * REINFORCE++: the reward-to-go of every token (with the KL penalties still to come), whitened over the batch, which
 * stands in for a baseline. Works with one sample per task.
 * Source: Hu et al., REINFORCE++, https://arxiv.org/abs/2501.03262
 */
export function reinforce(options: WhitenedOptions = {}): Estimator {
  const { gamma, time, leaves } = checkedCredit(options);
  const { whitening = { mean: true, std: true } } = options;
  return {
    name: 'reinforce',
    needsCritic: false,
    needsGreedy: false,
    leaves,
    minimumGroup: 1,
    estimate(input: AdvantageInput): AdvantageOutput {
      const view = attemptsOf(input.trajectories, leaves);
      const penalties = input.penalties && view.gather('penalties', input.penalties);
      const streams = view.attempts.map((attempt, i) => tokenReturns(attempt, gamma, time, penalties?.[i]));
      whiten(view, streams, whitening, input.keep);
      return {
        advantages: view.scatter(streams),
        metrics: groupMetrics(view, groupsOf(view.attempts), penalties),
      };
    },
  };
}
