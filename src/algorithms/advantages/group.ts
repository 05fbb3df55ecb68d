import { type Attempt, type Attempts, attemptsOf } from '../attempts.ts';
import { tokenReturns, totalReward, turnReturns } from '../returns.ts';
import { allEqual, weightedMean, weightedStd } from '../statistics.ts';
import {
  type AdvantageInput,
  type AdvantageOutput,
  type CreditOptions,
  checkedCredit,
  type Estimator,
} from './contract.ts';
import { type WhitenedOptions, type Whitening, whiten } from './whiten.ts';

/**
 * Estimators whose baseline is the group: the samples of one task. With one reward per episode they are
 *
 *   reinforce_baseline   R − mean(R), then scaled over the batch       (REINFORCE++-baseline)
 *   group_norm           (R − mean(R)) / (std(R) + ε), std over n − 1  (GRPO)
 *   dr_grpo              R − mean(R)                                   (Dr. GRPO; use constant aggregation)
 *   rloo                 R_i − mean of the others                      (RLOO)
 *   opo                  R − Σ length·R / Σ length                     (OPO)
 *
 * With rewards per turn, R is the return G_k from turn k on (a reward does not credit what came after it), and the
 * baseline of turn k is taken over the group's returns from the same turn on; a member that took fewer turns enters with
 * its last turn. A penalty per token (KL) is added after the baseline, as reward-to-go, and is not baselined.
 *
 * Where all members of a group have the same return the advantage is exactly 0, and so is that of a group of one:
 * nothing was compared, so nothing is learned. reinforce_baseline therefore divides by the standard deviation over the
 * batch but does not subtract the batch mean, which would hand such groups a non-zero advantage (whitening.mean does it
 * as published).
 *
 * Sources: Hu et al., REINFORCE++, https://arxiv.org/abs/2501.03262; Shao et al., DeepSeekMath, 4.1,
 * https://arxiv.org/abs/2402.03300; Liu et al., Understanding R1-Zero-Like Training,
 * https://arxiv.org/abs/2503.20783; Ahmadian et al., Back to Basics, https://arxiv.org/abs/2402.14740; Hao et al.,
 * On-Policy RL with Optimal Reward Baseline, https://arxiv.org/abs/2505.23585
 */
interface GroupRule {
  readonly name: string;
  /** Compared returns of a group's members, not all equal. */
  compare(returns: Float64Array, weights: Float64Array, lengths: Float64Array): Float64Array;
  readonly whitening?: Whitening;
}

export function reinforceBaseline(options: WhitenedOptions = {}): Estimator {
  const { whitening = { mean: false, std: true } } = options;
  return groupEstimator({ name: 'reinforce_baseline', compare: centred, whitening }, options);
}

/** @param options.epsilon added to the standard deviation; 1e-6 when not given */
export function groupNorm(options: CreditOptions & { readonly epsilon?: number | undefined } = {}): Estimator {
  const { epsilon = 1e-6 } = options;
  const compare: GroupRule['compare'] = (returns, weights) => {
    const mean = weightedMean(returns, weights);
    const scale = weightedStd(returns, weights, mean) + epsilon;
    return returns.map(value => (value - mean) / scale);
  };
  return groupEstimator({ name: 'group_norm', compare }, options);
}

export function drGrpoAdvantage(options: CreditOptions = {}): Estimator {
  return groupEstimator({ name: 'dr_grpo', compare: centred }, options);
}

export function leaveOneOut(options: CreditOptions = {}): Estimator {
  const compare: GroupRule['compare'] = (returns, weights) => {
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const sum = weightedMean(returns, weights) * total;
    return returns.map((value, i) => value - (sum - weights[i]! * value) / (total - weights[i]!));
  };
  return groupEstimator({ name: 'rloo', compare }, options);
}

export function optimalBaseline(options: CreditOptions = {}): Estimator {
  const compare: GroupRule['compare'] = (returns, weights, lengths) => {
    const tokens = lengths.map((length, i) => length * weights[i]!);
    // Without a single token there is nothing the baseline could matter to.
    const baseline = tokens.some(count => count > 0) ? weightedMean(returns, tokens) : 0;
    return returns.map(value => value - baseline);
  };
  return groupEstimator({ name: 'opo', compare }, options);
}

function centred(returns: Float64Array, weights: Float64Array): Float64Array {
  const mean = weightedMean(returns, weights);
  return returns.map(value => value - mean);
}

function groupEstimator(rule: GroupRule, options: CreditOptions): Estimator {
  const { gamma, time, leaves } = checkedCredit(options);
  if (time === 'token' && gamma !== 1) {
    throw new Error(
      `${rule.name} with gamma ${gamma} needs time counted in turns: discounted per token, the returns of a group's ` +
        `members differ by their lengths and have no common baseline`,
    );
  }
  return {
    name: rule.name,
    needsCritic: false,
    needsGreedy: false,
    leaves,
    minimumGroup: 2,
    estimate(input: AdvantageInput): AdvantageOutput {
      const view = attemptsOf(input.trajectories, leaves);
      const groups = groupsOf(view.attempts);
      const penalties = input.penalties && view.gather('penalties', input.penalties);
      const streams = penalties
        ? view.attempts.map((attempt, i) => tokenReturns(attempt, gamma, time, penalties[i], false))
        : view.zeros();
      for (const members of groups) {
        const attempts = members.map(i => view.attempts[i]!);
        for (const [j, advantages] of compareTurns(attempts, gamma, rule).entries()) {
          addPerTurn(streams[members[j]!]!, attempts[j]!, advantages);
        }
      }
      if (rule.whitening) whiten(view, streams, rule.whitening, input.keep);
      return { advantages: view.scatter(streams), metrics: groupMetrics(view, groups, penalties) };
    },
  };
}

/** Indices of attempts of equal group. */
export function groupsOf(attempts: readonly Attempt[]): number[][] {
  const groups = new Map<string, number[]>();
  for (const [i, { group }] of attempts.entries()) {
    const members = groups.get(group);
    if (members) members.push(i);
    else groups.set(group, [i]);
  }
  return [...groups.values()];
}

/** Per member [turns]: the advantage of each of its turns. */
function compareTurns(attempts: readonly Attempt[], gamma: number, rule: GroupRule): Float64Array[] {
  const returns = attempts.map(attempt => turnReturns(attempt, gamma));
  const weights = Float64Array.from(attempts, attempt => attempt.weight);
  const lengths = Float64Array.from(attempts, attempt => attempt.length);
  const advantages = attempts.map(attempt => new Float64Array(attempt.turns.length));
  const longest = Math.max(...returns.map(row => row.length));
  for (let k = 0; k < longest; k++) {
    const compared = Float64Array.from(returns, row => row[Math.min(k, row.length - 1)] ?? 0);
    if (allEqual(compared)) continue;
    const result = rule.compare(compared, weights, lengths);
    for (const [i, row] of advantages.entries()) if (k < row.length) row[k] = result[i]!;
  }
  return advantages;
}

/** Adds to every token what its turn has earned. */
export function addPerTurn(stream: Float64Array, attempt: Attempt, perTurn: Float64Array): void {
  for (const [k, { start, end }] of attempt.turns.entries()) {
    const value = perTurn[k]!;
    for (let t = start; t < end; t++) stream[t]! += value;
  }
}

/**
 * return: mean return after penalties. group_reward_std: mean standard deviation inside groups of two or more.
 * zero_variance_groups and single_member_groups: shares of the groups that taught nothing, and why.
 */
export function groupMetrics(
  view: Attempts,
  groups: readonly (readonly number[])[],
  penalties?: readonly Float64Array[],
): Record<string, number> {
  if (groups.length === 0) return {};
  const rewards = view.attempts.map(totalReward);
  const returns = rewards.map((reward, i) => reward - (penalties ? sumOf(penalties[i]!) : 0));
  const weights = view.attempts.map(attempt => attempt.weight);
  const several = groups.filter(members => members.length > 1);
  const stds = several.map(members => {
    const [values, shares] = [members.map(i => rewards[i]!), members.map(i => weights[i]!)];
    return allEqual(values) ? 0 : weightedStd(values, shares, weightedMean(values, shares));
  });
  return {
    return: weightedMean(returns, weights),
    ...(several.length > 0 ? { group_reward_std: stds.reduce((sum, std) => sum + std, 0) / several.length } : {}),
    zero_variance_groups: stds.filter(std => std === 0).length / groups.length,
    single_member_groups: 1 - several.length / groups.length,
  };
}

function sumOf(values: Float64Array): number {
  let sum = 0;
  for (let t = 0; t < values.length; t++) sum += values[t]!;
  return sum;
}
