import { z } from 'zod';
import { onnxPolicy } from '../../src/engines/onnx/index.ts';
import { grpo, jsonlTracker, readJsonl, train } from '../../src/index.ts';

/** A reward function of one's own and a data set with columns of its own. Compiled by `npm run types`, never run. */

declare function show(...values: unknown[]): void;

const Row = z.object({ question: z.string(), answer: z.string() });

export async function rlvr(): Promise<void> {
  const run = train({
    policy: await onnxPolicy({ model: './models/tiny' }),
    tasks: readJsonl('gsm8k.jsonl', row => {
      const { question, answer } = Row.parse(row);
      return { prompt: [{ role: 'user', content: question }], label: answer };
    }),
    reward: ({ text, label }) => (text.trim().endsWith(`#### ${label}`) ? 1 : 0),
    algorithm: grpo({ clip: [0.2, 0.28] }),
    groupSize: 8,
    groupsPerStep: 16,
    steps: 200,
    seed: 1,
    trackers: [await jsonlTracker({ dir: 'runs/gsm8k' })],
  });
  for await (const step of run) {
    const index: number = step.index;
    const reward: number | undefined = step.metrics['rollout/reward_mean'];
    show(index, reward);
  }
}

/** Rewards may come later, and with a score and metrics; tasks may be written down as they are. */
export function judged(policy: Awaited<ReturnType<typeof onnxPolicy>>) {
  return train({
    policy: () => policy,
    tasks: [{ prompt: '1+1', label: '2' }],
    reward: async ({ text, label, task }) => ({
      reward: text === label ? 1 : 0,
      score: task.metadata.hard === true ? 2 : 1,
      metrics: { length: text.length },
    }),
    algorithm: grpo(),
  });
}

export function refused(policy: Awaited<ReturnType<typeof onnxPolicy>>) {
  const tasks = [{ prompt: '1' }];
  const algorithm = grpo();
  // @ts-expect-error an option that does not exist
  train({ policy, tasks, algorithm, reward: () => 1, groupsize: 8 });
  // @ts-expect-error a reward that is not a number
  train({ policy, tasks, algorithm, reward: () => '1' });
  // @ts-expect-error tasks without a prompt
  train({ policy, tasks: [{ question: '1' }], algorithm, reward: () => 1 });
  // @ts-expect-error an algorithm by name: the command line has names, a program has functions
  train({ policy, tasks, algorithm: 'grpo', reward: () => 1 });
  // @ts-expect-error a clip range of one number in brackets
  grpo({ clip: [0.2] });
}
