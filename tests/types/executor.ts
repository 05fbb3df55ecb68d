import type { Episode, Executor, PolicyEngine, Tracker } from '../../src/index.ts';
import {
  evaluatePolicy,
  jsonlTracker,
  reinforceBaseline,
  serializeEpisode,
  toTrajectories,
  train,
} from '../../src/index.ts';

/** An executor, a tracker and an engine of one's own. Compiled by `npm run types`, never run. */

declare function show(...values: unknown[]): void;

export const tracker: Tracker = {
  name: 'mine',
  log({ step, metrics }) {
    show(step, metrics['rollout/reward_mean']?.toFixed(3));
  },
  close: () => undefined,
};

/** What a directory of a run holds, from a program. */
export const files = () => jsonlTracker({ dir: 'runs/mine', serialize: serializeEpisode });

export const lengths = (episode: Episode): number[] =>
  toTrajectories(episode).map(({ tokens }: { readonly tokens: Int32Array }) => tokens.length);

export async function both(policy: PolicyEngine, agent: Executor, stop: AbortSignal): Promise<number> {
  const tasks = [{ prompt: '1', metadata: { level: 3 } }];
  const run = train({ policy, agent, tasks, algorithm: reinforceBaseline(), trackers: [tracker], stop });
  const first = await run.next();
  if (!first.done) show(first.value.episodes.flatMap(lengths));
  const { metrics, episodes } = await evaluatePolicy({ policy, agent, tasks, samples: 4, temperature: 0 });
  return metrics['eval/eval/pass4'] ?? episodes.length;
}

export function refused(policy: PolicyEngine, agent: Executor) {
  const tasks = [{ prompt: '1' }];
  // @ts-expect-error no algorithm
  train({ policy, agent, tasks });
  // @ts-expect-error a sampler cannot be trained
  train({ policy: policy.sampler, agent, tasks, algorithm: reinforceBaseline() });
}

export async function readOnly(policy: PolicyEngine, agent: Executor) {
  for await (const step of train({ policy, agent, tasks: [{ prompt: '1' }], algorithm: reinforceBaseline() })) {
    // @ts-expect-error metrics are for reading
    step.metrics['rollout/reward_mean'] = 1;
    // @ts-expect-error steps are counted by the run
    step.index = 0;
  }
}
