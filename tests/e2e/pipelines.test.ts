import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { grpo } from '../../src/algorithms/recipes.ts';
import { type OnnxEngine, onnxPolicy } from '../../src/engines/onnx/index.ts';
import type { Environment } from '../../src/envs/contracts.ts';
import { serializeEpisode } from '../../src/episode/serialize.ts';
import type { PipelineChoice } from '../../src/rollout/choose.ts';
import { jsonlTracker } from '../../src/tracking/jsonl.ts';
import { type TrainOptions, train } from '../../src/train.ts';
import { lasting, readRecords, workplace, writeTinyModel } from '../support/workplace.ts';

/** Three pipelines, one recipe, on the real engine. */

const model = join(workplace(), 'model');
const runs = workplace();
beforeAll(() => writeTinyModel(model));

const tasks = ['1+2', '12', '3*4-5', '60-15', '9', '7.5/3', '4', '8/2'].map(prompt => ({ prompt }));

const agent = multiTurn((): Environment => {
  let turns = 0;
  return {
    reset: ({ prompt }) => ({ observation: prompt }),
    step: ({ actionText, turn }) => {
      turns += 1;
      const reward = [...actionText].filter(character => character === 'a').length / 4;
      return { reward, done: turn === 2 || actionText.startsWith('c'), feedback: '?', metrics: { turns_seen: turns } };
    },
  };
});

const ADDED = [
  ...['queue_depth', 'groups_in_flight', 'groups_overtaken', 'stale_dropped', 'stale_weighted', 'length_bias'],
  ...['staleness_mean', 'staleness_max', 'versions_per_sequence', 'partial_rate'],
].map(name => `rollout/${name}`);

async function run(
  pipeline: PipelineChoice,
  options: Partial<TrainOptions> & { separate?: boolean; onStep?: (n: number) => void } = {},
) {
  const { separate, onStep, ...more } = options;
  const policy = await onnxPolicy({ model, threads: 1, maxRows: 8, ...(separate && { separate: {} }) });
  try {
    const metrics: Record<string, unknown>[] = [];
    const job = train({
      policy,
      tasks,
      agent,
      algorithm: grpo({ kl: { coefficient: 0.01 } }),
      groupSize: 4,
      groupsPerStep: 3,
      steps: 4,
      seed: 5,
      optimizer: { learningRate: 1e-2, batchSize: 6, epochs: 2 },
      limits: { maxNewTokens: 4 },
      evaluation: { tasks: tasks.slice(0, 2), samples: 3, every: 2 },
      pipeline,
      ...more,
    });
    for await (const step of job) {
      metrics.push(step.metrics);
      onStep?.(step.index);
    }
    return { metrics, weights: await (policy.learner as OnnxEngine).weights() };
  } finally {
    await policy.close();
  }
}

const comparable = (metrics: Record<string, unknown>[]) =>
  metrics.map(step => Object.fromEntries(Object.entries(lasting(step)).filter(([name]) => !ADDED.includes(name))));

describe('with no staleness allowed', () => {
  it('async and partial rollout end with the metrics and weights of sync, bit for bit', async () => {
    const deterministic = true;
    const sync = await run({}, { deterministic });
    expect(sync.metrics).toHaveLength(5);
    const choices: [PipelineChoice, boolean][] = [
      [{ overlap: { maxStaleness: 0 } }, false],
      [{ overlap: { maxStaleness: 0, partial: 'keep' } }, false],
      [{ overlap: { maxStaleness: 0, partial: 'recompute' } }, true],
      [{ sleep: { sampler: false } }, true],
      [{ sleep: { learner: true } }, false],
    ];
    for (const [choice, separate] of choices) {
      const other = await run(choice, { deterministic, separate });
      const offloaded = other.metrics.flatMap(step => step['rollout/offloaded_bytes'] ?? []);
      expect(offloaded.length).toBe(choice.sleep?.learner ? 4 : 0);
      for (const step of other.metrics) delete step['rollout/offloaded_bytes'];
      expect(comparable(other.metrics)).toEqual(comparable(sync.metrics));
      expect(other.weights).toEqual(sync.weights);
      if (choice.overlap) expect(other.metrics[1]).toMatchObject({ 'rollout/staleness_max': 0 });
    }
  });
});

describe('with overlap', () => {
  it.each(['keep', 'recompute'] as const)(
    'trains in separate threads within the bound, partial rollout: %s',
    async partial => {
      const { metrics } = await run(
        { overlap: { partial, maxStaleness: 2, queueSize: 2 } },
        { separate: true, evaluation: undefined, steps: 6 },
      );
      expect(metrics).toHaveLength(6);
      for (const step of metrics) {
        expect(step['rollout/staleness_max']).toBeLessThanOrEqual(2);
        expect(step['rollout/num_samples']).toBeGreaterThanOrEqual(12);
      }
      // While a batch is trained on the next one is sampled.
      expect(metrics.slice(1).some(step => (step['rollout/staleness_max'] as number) > 0)).toBe(true);
    },
  );

  it('is refused for a policy whose halves share their weights', async () => {
    await expect(run({ overlap: {} })).rejects.toThrow(/share one set of weights.*separate threads/);
  });
});

it('an async run that is stopped and resumed neither loses nor repeats an episode', async () => {
  const directory = join(runs, 'run');
  const overlap = { partial: 'keep', maxStaleness: 2, queueSize: 2 } as const;
  const checkpoints = { directory: join(runs, 'checkpoints'), every: 1 };
  const common = { separate: true, evaluation: undefined, steps: 8, checkpoints } as const;
  const stop = new AbortController();
  const tracker = async (resumeAfter?: number) => [
    await jsonlTracker({
      dir: directory,
      serialize: serializeEpisode,
      ...(resumeAfter === undefined ? {} : { resumeAfter }),
    }),
  ];
  const first = await run(
    { overlap },
    {
      ...common,
      trackers: await tracker(),
      stop: stop.signal,
      onStep: step => step === 3 && stop.abort(),
    },
  );
  expect(first.metrics).toHaveLength(3);
  const second = await run(
    { overlap },
    {
      ...common,
      trackers: await tracker(3),
      checkpoints: { ...checkpoints, resume: true },
    },
  );
  expect(second.metrics).toHaveLength(5);
  const ids = readRecords(join(directory, 'episodes.jsonl')).map(
    ({ id, episode }) => id ?? (episode as { id: string }).id,
  );
  expect(ids.length).toBe(8 * 12);
  expect(new Set(ids).size).toBe(ids.length);
  rmSync(directory, { recursive: true });
});
