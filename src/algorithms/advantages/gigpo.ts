import { type Attempt, attemptsOf } from '../attempts.ts';
import { tokenReturns, totalReward, turnReturns } from '../returns.ts';
import { similarity, similarityBound } from '../similarity.ts';
import { allEqual, weightedMean, weightedStd } from '../statistics.ts';
import {
  type AdvantageInput,
  type AdvantageOutput,
  type CreditOptions,
  checkedCredit,
  type Estimator,
} from './contract.ts';
import { addPerTurn, groupMetrics, groupsOf } from './group.ts';

export interface GigpoOptions extends CreditOptions {
  /** Discount of the returns that turns are compared by; 0.95 when not given. With 1 time to success does not count. */
  readonly gamma?: number | undefined;
  /** ω: weight of the step advantage; 1 when not given. */
  readonly omega?: number | undefined;
  /** Divide by the standard deviation of the group, or only subtract its mean; `mean` when not given. */
  readonly norm?: 'mean' | 'mean_std' | undefined;
  /** Added to the standard deviation; 1e-6 when not given. */
  readonly epsilon?: number | undefined;
  /** In (0, 1]: states at least so alike are one state; 1, only equal ones, when not given. */
  readonly similarity?: number | undefined;
  /** Each episode enters the episode statistics once, or once per turn (as the authors' code does by default). */
  readonly statistics?: 'episode' | 'turn' | undefined;
}

/**
 * Group-in-group policy optimisation: A = A_E + ω·A_S for every token of a turn.
 *
 *   A_E = (R − mean(R)) / F      over the episodes of the group, R the undiscounted return
 *   A_S = (G − mean(G)) / F      over the turns of the group taken in the same state (`stateKey`), whichever episode
 *                                and time they are from; G = r + γ·G of the next turn
 *
 * A turn whose state nobody else of the group was in, or that names no state, has A_S = 0: with no shared states this
 * is GRPO. A group of one has A_E = 0, and so has a group of equal returns. Similar states are clustered greedily, each
 * against the first member of a cluster, in the order of the trajectories.
 * Source: Feng et al., Group-in-Group Policy Optimization, eq. 3-8, https://arxiv.org/abs/2505.10978
 */
export function gigpo(options: GigpoOptions = {}): Estimator {
  const { gamma, time, leaves } = checkedCredit({ ...options, gamma: options.gamma ?? 0.95 });
  const { omega = 1, norm = 'mean', epsilon = 1e-6, similarity: threshold = 1, statistics = 'episode' } = options;
  if (!(omega >= 0 && omega < Number.POSITIVE_INFINITY)) throw new Error(`omega must be a number ≥ 0, got ${omega}`);
  if (!(threshold > 0 && threshold <= 1)) throw new Error(`the similarity must be in (0, 1], got ${threshold}`);
  if (time === 'token') throw new Error('gigpo compares turns; time must be counted in turns');

  const compare = (values: Float64Array, weights: Float64Array): Float64Array => {
    if (allEqual(values)) return new Float64Array(values.length);
    const mean = weightedMean(values, weights);
    const scale = norm === 'mean' ? 1 : weightedStd(values, weights, mean) + epsilon;
    return values.map(value => (value - mean) / scale);
  };

  /** Per attempt: A_E. */
  const episodeAdvantages = (attempts: readonly Attempt[]): Float64Array => {
    const rewards = Float64Array.from(attempts, totalReward);
    const weights = Float64Array.from(attempts, attempt => attempt.weight);
    if (statistics === 'episode') return compare(rewards, weights);
    const perTurn = attempts.flatMap((attempt, i) => attempt.turns.map(() => i));
    const compared = compare(
      Float64Array.from(perTurn, i => rewards[i]!),
      Float64Array.from(perTurn, i => weights[i]!),
    );
    return Float64Array.from(attempts, (_, i) => compared[perTurn.indexOf(i)] ?? 0);
  };

  return {
    name: 'gigpo',
    needsCritic: false,
    needsGreedy: false,
    leaves,
    minimumGroup: 2,
    estimate(input: AdvantageInput): AdvantageOutput {
      const view = attemptsOf(input.trajectories, leaves);
      const penalties = input.penalties && view.gather('penalties', input.penalties);
      const streams = penalties
        ? view.attempts.map((attempt, i) => tokenReturns(attempt, gamma, time, penalties[i], false))
        : view.zeros();
      const groups = groupsOf(view.attempts);
      const sizes: number[] = [];
      for (const members of groups) {
        const attempts = members.map(i => view.attempts[i]!);
        const episode = episodeAdvantages(attempts);
        const perTurn = attempts.map((attempt, i) => new Float64Array(attempt.turns.length).fill(episode[i]!));
        const returns = attempts.map(attempt => turnReturns(attempt, gamma));
        for (const turns of stepGroups(attempts, threshold)) {
          sizes.push(turns.length);
          const compared = compare(
            Float64Array.from(turns, ({ i, k }) => returns[i]![k]!),
            Float64Array.from(turns, ({ i }) => attempts[i]!.weight),
          );
          for (const [n, { i, k }] of turns.entries()) perTurn[i]![k]! += omega * compared[n]!;
        }
        for (const [j, i] of members.entries()) addPerTurn(streams[i]!, attempts[j]!, perTurn[j]!);
      }
      return {
        advantages: view.scatter(streams),
        metrics: { ...groupMetrics(view, groups, penalties), ...sizeMetrics(sizes) },
      };
    },
  };
}

interface TurnIndex {
  /** Attempt inside the group. */
  readonly i: number;
  /** Turn inside the attempt. */
  readonly k: number;
}

/** Turns of one group, gathered by state. */
function stepGroups(attempts: readonly Attempt[], threshold: number): TurnIndex[][] {
  const clusters = new Map<string, TurnIndex[]>();
  for (const [i, attempt] of attempts.entries()) {
    for (const [k, { stateKey }] of attempt.turns.entries()) {
      if (stateKey === undefined) continue;
      const representative = nearestState(clusters, stateKey, threshold);
      const members = clusters.get(representative);
      if (members) members.push({ i, k });
      else clusters.set(representative, [{ i, k }]);
    }
  }
  return [...clusters.values()];
}

function nearestState(clusters: ReadonlyMap<string, unknown>, state: string, threshold: number): string {
  if (threshold === 1 || clusters.has(state)) return state;
  for (const known of clusters.keys()) {
    if (similarityBound(known.length, state.length) >= threshold && similarity(known, state) >= threshold) return known;
  }
  return state;
}

/** step_group_size: mean number of turns compared; step_group_singletons: share of groups of one, which teach nothing. */
function sizeMetrics(sizes: readonly number[]): Record<string, number> {
  if (sizes.length === 0) return { step_group_size: 0, step_group_singletons: 0 };
  return {
    step_group_size: sizes.reduce((sum, size) => sum + size, 0) / sizes.length,
    step_group_singletons: sizes.filter(size => size === 1).length / sizes.length,
  };
}
