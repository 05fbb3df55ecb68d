import { type Attempt, attemptsOf } from '../attempts.ts';
import { tokenReturns } from '../returns.ts';
import { allEqual, weightedMean } from '../statistics.ts';
import {
  type AdvantageInput,
  type AdvantageOutput,
  type CreditOptions,
  checkedCredit,
  type Estimator,
} from './contract.ts';
import { addPerTurn, groupMetrics, groupsOf } from './group.ts';

/**
 * Credit in a tree of turns whose leaves are alternatives. The value of a turn is what it earned plus the mean value of
 * its continuations,
 *
 *   V(n) = r(n) + γ·mean over children c of V(c),
 *
 * the mean over the leaves below it in which every branch point shares out its weight equally; a mean over all leaves
 * alike would favour the subtrees that were expanded more. The advantage of a branch is measured against its siblings,
 *
 *   A(n) = V(n) − mean over the siblings of n, n included,
 *
 * where the first turns of all episodes of a group are siblings. A turn that was the only continuation inherits the
 * advantage of the turn before it, since nothing was compared in between; so in a group of chains this is R − mean(R).
 * A token that several leaves share has the same advantage in each; aggregation (aggregate.ts) counts it once.
 */
export function tree(options: CreditOptions = {}): Estimator {
  const { gamma, time } = checkedCredit(options);
  if (time === 'token') throw new Error('tree compares turns; time must be counted in turns');
  if (options.leaves === 'parts') throw new Error('tree compares the leaves of an episode: they must be alternatives');
  return {
    name: 'tree',
    needsCritic: false,
    needsGreedy: false,
    leaves: 'alternatives',
    minimumGroup: 2,
    estimate(input: AdvantageInput): AdvantageOutput {
      const view = attemptsOf(input.trajectories, 'alternatives');
      const penalties = input.penalties && view.gather('penalties', input.penalties);
      const streams = penalties
        ? view.attempts.map((attempt, i) => tokenReturns(attempt, gamma, time, penalties[i], false))
        : view.zeros();
      const groups = groupsOf(view.attempts);
      for (const members of groups) {
        const paths = growTree(
          members.map(i => view.attempts[i]!),
          gamma,
        );
        for (const [j, i] of members.entries()) {
          addPerTurn(
            streams[i]!,
            view.attempts[i]!,
            Float64Array.from(paths[j]!, node => node.advantage),
          );
        }
      }
      return { advantages: view.scatter(streams), metrics: groupMetrics(view, groups, penalties) };
    },
  };
}

interface Node {
  readonly reward: number;
  readonly children: Map<string, Node>;
  /** Paths that end here. */
  leaves: number;
  value: number;
  advantage: number;
}

const newNode = (reward: number): Node => ({ reward, children: new Map(), leaves: 0, value: 0, advantage: 0 });

/** Per attempt: the nodes of its turns, with their values and advantages. */
function growTree(attempts: readonly Attempt[], gamma: number): Node[][] {
  const episodes = new Map<string, Node>();
  const paths = attempts.map(attempt => {
    let node = episodes.get(attempt.episode) ?? newNode(0);
    episodes.set(attempt.episode, node);
    const path = attempt.turns.map(turn => {
      const child = node.children.get(`${turn.segment}`) ?? newNode(turn.reward);
      node.children.set(`${turn.segment}`, child);
      node = child;
      return child;
    });
    node.leaves += 1;
    return path;
  });
  for (const root of episodes.values()) evaluate(root, gamma);

  // The prompt is one state: its continuations are the first turns of all episodes, each episode weighing 1.
  const first = [...episodes.values()].flatMap(root =>
    [...root.children.values()].map(node => ({ node, weight: 1 / root.children.size })),
  );
  compareSiblings(first, 0);
  return paths;
}

function evaluate(node: Node, gamma: number): number {
  let sum = 0;
  for (const child of node.children.values()) sum += evaluate(child, gamma);
  // A path that ends here is a continuation that earned nothing more.
  const ends = node.children.size === 0 ? 0 : node.leaves;
  const continuations = node.children.size + ends;
  node.value = node.reward + (continuations > 0 ? (gamma * sum) / continuations : 0);
  return node.value;
}

function compareSiblings(siblings: readonly { node: Node; weight: number }[], inherited: number): void {
  const values = siblings.map(({ node }) => node.value);
  const equal = allEqual(values);
  const mean = weightedMean(
    values,
    siblings.map(({ weight }) => weight),
  );
  for (const { node } of siblings) {
    if (siblings.length === 1) node.advantage = inherited;
    else node.advantage = equal ? 0 : node.value - mean;
    compareSiblings(
      [...node.children.values()].map(child => ({ node: child, weight: 1 })),
      node.advantage,
    );
  }
}
