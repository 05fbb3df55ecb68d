import { attemptsOf } from '../attempts.ts';
import { tokenReturns } from '../returns.ts';
import {
  type AdvantageInput,
  type AdvantageOutput,
  type CreditOptions,
  checkedCredit,
  type Estimator,
} from './contract.ts';
import { addPerTurn, groupMetrics, groupsOf } from './group.ts';

/**
 * ReMax: the reward-to-go minus the return of the greedy answer to the same task. Needs one greedy episode per task
 * and works with one sample per task.
 * Source: Li et al., ReMax, eq. 5, https://arxiv.org/abs/2310.10505
 */
export function remax(options: CreditOptions = {}): Estimator {
  const { gamma, time, leaves } = checkedCredit(options);
  return {
    name: 'remax',
    needsCritic: false,
    needsGreedy: true,
    leaves,
    minimumGroup: 1,
    estimate(input: AdvantageInput): AdvantageOutput {
      const view = attemptsOf(input.trajectories, leaves);
      const penalties = input.penalties && view.gather('penalties', input.penalties);
      const streams = view.attempts.map((attempt, i) => {
        const stream = tokenReturns(attempt, gamma, time, penalties?.[i]);
        const greedy = input.greedyReturns?.get(attempt.group);
        if (greedy === undefined) throw new Error(`remax needs the greedy return of group '${attempt.group}'`);
        addPerTurn(stream, attempt, new Float64Array(attempt.turns.length).fill(-greedy));
        return stream;
      });
      return {
        advantages: view.scatter(streams),
        metrics: groupMetrics(view, groupsOf(view.attempts), penalties),
      };
    },
  };
}
