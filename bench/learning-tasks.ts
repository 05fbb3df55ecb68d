import { multiTurn } from '../src/agents/multi-turn.ts';
import { type EstimatorName, estimator } from '../src/algorithms/advantages/index.ts';
import type { Aggregation } from '../src/algorithms/aggregate.ts';
import { type Algorithm, createAlgorithm } from '../src/algorithms/algorithm.ts';
import { objective, type PolicyLossType } from '../src/algorithms/losses/index.ts';
import { mean } from '../src/rollout/metrics.ts';
import { tableCritic } from '../src/testing/table-critic.ts';
import { type TrainOptions, train } from '../src/train.ts';
import { abcPolicy } from '../tests/support/abc-policy.ts';

/**
 * Two tasks that a bigram policy can learn: it knows the last token only, and says a, b, c or ends its answer with equal
 * probability at first. Everything else is as in any run: `train` with its pipeline, estimators, losses and updates.
 */

type Task = Pick<TrainOptions, 'tasks' | 'agent' | 'reward' | 'limits'>;

const LETTERS = 'abc';

/** One answer: the letter that belongs to the digit, and nothing after it. Reward 1/16 by chance, 1 when learned. */
const recall: Task = {
  tasks: Array.from({ length: 12 }, (_, i) => ({ prompt: String(i % 3), label: LETTERS[i % 3]! })),
  reward: ({ text, label }) => (text === label ? 1 : 0),
  limits: { maxNewTokens: 3 },
};

/**
 * Several turns: three doors in a row, each opened by the letter that belongs to its digit. A wrong letter costs a turn
 * of the six; the third door is worth 1. Reached in one of six attempts by chance.
 */
const corridor: Task = {
  tasks: Array.from({ length: 12 }, () => ({ prompt: '0' })),
  agent: multiTurn(() => {
    let door = 0;
    return {
      reset: ({ prompt }) => ({ observation: prompt, stateKey: '0' }),
      step: ({ actionText, turn }) => {
        if (actionText.startsWith(LETTERS[door]!)) door += 1;
        const done = door === 3 || turn === 5;
        return { reward: door === 3 ? 1 : 0, done, feedback: String(door), stateKey: String(door) };
      },
    };
  }),
  limits: { maxNewTokens: 2, maxTurns: 6 },
};

export const TASKS = { recall, corridor } as const;
export type TaskName = keyof typeof TASKS;

export interface Combination {
  readonly task: TaskName;
  readonly estimator: EstimatorName;
  readonly loss: PolicyLossType;
  readonly seed: number;
}

/** Mean reward of each step of one run. */
export async function learn({ task, seed, ...names }: Combination, steps: number): Promise<number[]> {
  const { engine } = abcPolicy();
  const algorithm = algorithmOf({ task, ...names });
  const rewards: number[] = [];
  const run = train({
    ...TASKS[task],
    policy: engine,
    algorithm,
    ...(algorithm.needs.critic ? { critic: { model: tableCritic(260), learningRate: 4 } } : {}),
    seed,
    steps,
    groupSize: 8,
    groupsPerStep: 4,
    // Two updates a step, so that the second one is off-policy and the losses differ.
    optimizer: {
      learningRate: LEARNING_RATE[task] * (algorithm.aggregation.mode === 'constant' ? CONSTANT_FACTOR : 1),
      batchSize: 16,
    },
  });
  for await (const { metrics } of run) rewards.push(metrics['rollout/reward_mean']!);
  return rewards;
}

/** Of plain gradient descent. */
const LEARNING_RATE = { recall: 6, corridor: 3 } as const;
/** The constant length divides by more tokens than episodes have. */
const CONSTANT_FACTOR = 3;

function algorithmOf({ task, estimator: name, loss }: Omit<Combination, 'seed'>): Algorithm {
  const { maxNewTokens = 1, maxTurns = 1 } = TASKS[task].limits ?? {};
  const aggregation: Aggregation =
    name === 'dr_grpo'
      ? { mode: 'constant', length: maxNewTokens * maxTurns }
      : { mode: loss === 'gspo' || loss === 'sapo' ? 'sequence' : 'token' };
  return createAlgorithm({
    name: `${name}, ${loss}`,
    estimator: estimator(name, name === 'tree' ? { leaves: 'alternatives' } : {}),
    objective: objective(loss),
    aggregation,
  });
}

/** A run has improved when it gained at least so much reward: far more than its steps differ by chance. */
export const IMPROVED = 0.1;

/** Where a run began and ended: mean rewards over a fifth of its steps at either end. */
export function ends(rewards: readonly number[]): { readonly from: number; readonly to: number } {
  const fifth = Math.ceil(rewards.length / 5);
  return { from: mean(rewards.slice(0, fifth)), to: mean(rewards.slice(-fifth)) };
}
