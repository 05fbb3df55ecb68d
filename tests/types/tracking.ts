import {
  grpo,
  jsonlTracker,
  mlflowTracker,
  otelTracing,
  type PolicyEngine,
  perSample,
  singleTurn,
  type TaskInput,
  type Tracker,
  tensorboardTracker,
  traced,
  train,
  wandbTracker,
} from '../../src/index.ts';

/** The examples of docs/tracking.md. */
export async function tracked(policy: PolicyEngine, tasks: readonly TaskInput[], apiKey: string): Promise<number> {
  const agent = traced(singleTurn({ reward: perSample(({ text }) => text.length) }), await otelTracing());
  const trackers = [
    await jsonlTracker({ dir: 'runs/mine' }),
    await tensorboardTracker({ dir: 'runs/tensorboard/mine' }),
    await wandbTracker({ dir: 'runs/mine', apiKey, project: 'words' }),
    await mlflowTracker({ dir: 'runs/mine', trackingUri: 'http://localhost:5000', experiment: 'words' }),
  ];
  let steps = 0;
  for await (const { index } of train({ policy, tasks, agent, algorithm: grpo(), trackers })) steps = index;
  return steps;
}

export function rewardTracker(post: (line: string) => Promise<void>): Tracker {
  return {
    name: 'rewards',
    log: ({ step, metrics }) => post(`${step}: ${metrics['rollout/reward_mean']}`),
    close: end => post(`the run ${end}`),
  };
}
