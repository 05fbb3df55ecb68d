import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { abcPolicy } from '../tests/support/abc-policy.ts';
import { grpo } from './algorithms/recipes.ts';
import type { PolicyEngine } from './engines/contracts.ts';
import { FailureRateError } from './rollout/failures.ts';
import { jsonlTracker } from './tracking/jsonl.ts';
import { type TrainOptions, train } from './train.ts';
import { readTrainerState } from './training/checkpoint.ts';
import type { TrainStep } from './training/loop.ts';

/** What is kept of a run, and what it continues from: on the bigram policy, whose whole run takes milliseconds. */

let directory: string;
let root: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'train-checkpoints-'));
  root = join(directory, 'checkpoints');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const tasks = Array.from({ length: 8 }, (_, i) => ({ prompt: `say ${i}:`, label: 'a' }));
const heldOut = [
  { prompt: 'say 8:', label: 'a' },
  { prompt: 'say 9:', label: 'a' },
];

function options(policy: PolicyEngine, more: Partial<TrainOptions> = {}): TrainOptions {
  return {
    policy,
    tasks,
    reward: ({ text, label }) => (text.startsWith(label) ? 1 : 0),
    algorithm: grpo(),
    groupSize: 4,
    groupsPerStep: 4,
    steps: 6,
    seed: 3,
    optimizer: { learningRate: 2, batchSize: 8 },
    limits: { maxNewTokens: 4 },
    log: message => expect.unreachable(message),
    ...more,
  };
}

async function collect(run: AsyncIterable<TrainStep>): Promise<TrainStep[]> {
  const steps: TrainStep[] = [];
  for await (const step of run) steps.push(step);
  return steps;
}

const lasting = ({ metrics }: Pick<TrainStep, 'metrics'>) =>
  Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith('timing/')));
const kept = () => readdirSync(root).sort();
const step = (number: number) => `step-0000000${number}`;

describe('a damaged checkpoint', () => {
  it('is passed over with a warning that names the file, and replaced', async () => {
    const whole = abcPolicy().engine;
    const expected = await collect(train(options(whole)));
    await collect(train(options(abcPolicy().engine, { steps: 4, checkpoints: { directory: root, every: 2 } })));
    expect(kept()).toEqual([step(2), step(4)]);
    appendFileSync(join(root, step(4), 'learner/bigram.json'), ' ');

    const said: string[] = [];
    const checkpoints = { directory: root, every: 2, keep: 1, resume: true };
    const log = (message: string) => said.push(message);
    const rest = await collect(train(options(abcPolicy().engine, { checkpoints, log })));
    expect(said).toEqual([
      expect.stringMatching(/step-00000004 is damaged and passed over: .*bigram\.json has \d+ bytes instead of \d+$/),
    ]);
    expect(rest.map(({ index }) => index)).toEqual([3, 4, 5, 6]);
    expect(rest.map(lasting)).toEqual(expected.slice(2).map(lasting));
    expect(kept()).toEqual([step(6)]);
  });

  it('that is the only one leaves nothing to continue from', async () => {
    await collect(train(options(abcPolicy().engine, { steps: 2, checkpoints: { directory: root, every: 2 } })));
    rmSync(join(root, step(2), 'trainer.json'));
    const said: string[] = [];
    const again = { checkpoints: { directory: root, resume: true }, log: (message: string) => said.push(message) };
    const steps = await collect(train(options(abcPolicy().engine, again)));
    expect(steps[0]!.index).toBe(1);
    expect(said).toEqual([expect.stringMatching(/trainer\.json is missing$/)]);
  });
});

it('a checkpoint is refused by a run on other rows', async () => {
  await collect(train(options(abcPolicy().engine, { steps: 2, checkpoints: { directory: root, every: 2 } })));
  const checkpoints = { directory: root, resume: true };
  for (const other of [tasks.toReversed(), tasks.slice(1), tasks.map(task => ({ ...task, label: 'b' }))]) {
    await expect(collect(train(options(abcPolicy().engine, { checkpoints, tasks: other })))).rejects.toThrow(
      /belongs to a run on other rows/,
    );
  }
});

describe('the best checkpoint', () => {
  it('is written when an evaluation is better, kept by rotation, and known to a resumed run', async () => {
    const evaluation = { tasks: heldOut, samples: 8, temperature: 1, every: 1 };
    const best = { metric: 'eval/eval/reward_mean', mode: 'min' } as const;
    const checkpoints = { directory: root, keep: 1, every: 1, best };
    const run = { evaluation, checkpoints };
    const steps = await collect(train(options(abcPolicy().engine, run)));
    const rewards = steps.map(({ metrics }) => metrics['eval/eval/reward_mean']!);
    const lowest = rewards.indexOf(Math.min(...rewards));
    expect(lowest).toBeLessThan(6);
    expect(kept()).toEqual(lowest === 0 ? [step(6)] : [step(lowest), step(6)]);
    const known = readTrainerState(join(root, step(6))).best;
    expect(known).toEqual({ metric: 'eval/eval/reward_mean', value: rewards[lowest], step: lowest });

    const resumed = { ...run, checkpoints: { ...checkpoints, resume: true }, steps: 7 };
    await collect(train(options(abcPolicy().engine, resumed)));
    expect(readTrainerState(join(root, step(7))).best).toEqual(known);
  });

  it('by a metric that evaluations do not have is an error before training', async () => {
    const checkpoints = { directory: root, best: { metric: 'eval/eval/pass64' } };
    const run = options(abcPolicy().engine, { evaluation: { tasks: heldOut }, checkpoints });
    await expect(collect(train(run))).rejects.toThrow(/best_metric_key is eval\/eval\/pass64, and an evaluation has /);
  });
});

describe('too many failures', () => {
  /** A reward that fails from the given call on. */
  const failingFrom = (call: number) => {
    let calls = 0;
    const reward: NonNullable<TrainOptions['reward']> = ({ text, label }) => {
      calls += 1;
      if (calls > call) throw new Error('the judge is gone');
      return text.startsWith(label) ? 1 : 0;
    };
    return reward;
  };
  const EPISODES = 16;

  it('stop a run, which writes a checkpoint first and continues where it was', async () => {
    const expected = await collect(train(options(abcPolicy().engine)));
    const stopped = options(abcPolicy().engine, {
      reward: failingFrom(3 * EPISODES + 2),
      checkpoints: { directory: root },
    });
    const steps: TrainStep[] = [];
    const error = await (async () => {
      try {
        for await (const done of train(stopped)) steps.push(done);
      } catch (thrown) {
        return thrown as Error;
      }
      return undefined;
    })();
    expect(error).toBeInstanceOf(FailureRateError);
    expect(error!.message).toMatch(
      /^training stopped at step 4: 14 of 16 .*\n.*14 x reward: .*judge is gone\nThe checkpoint to continue from is .*step-00000003$/s,
    );
    steps.push(
      ...(await collect(train(options(abcPolicy().engine, { checkpoints: { directory: root, resume: true } })))),
    );
    expect(steps.map(lasting)).toEqual(expected.map(lasting));
  });

  it('in an evaluation do not lose the step before it', async () => {
    const evaluation = { tasks: heldOut, samples: 4, every: 2 };
    const expected = await collect(train(options(abcPolicy().engine, { evaluation })));
    const tracker = await jsonlTracker({ dir: directory });
    const stopped = options(abcPolicy().engine, {
      evaluation,
      reward: failingFrom(8 + 2 * EPISODES),
      checkpoints: { directory: root },
      trackers: [tracker],
    });
    await expect(collect(train(stopped))).rejects.toThrow(/8 of 8 episodes failed.*\nThe checkpoint .*step-00000002$/s);
    const written = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
    expect(written.map(line => JSON.parse(line).step)).toEqual([0, 1, 2]);
    const resumed = { evaluation, checkpoints: { directory: root, resume: true } };
    const rest = await collect(train(options(abcPolicy().engine, resumed)));
    expect(rest.map(lasting)).toEqual(expected.slice(3).map(lasting));
  });
});

describe('the moving average', () => {
  const evaluation = { tasks: heldOut, samples: 4, temperature: 1, every: 2, average: true };
  const run = { evaluation, average: { beta: 0.5 } };
  const tableOf = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<'logits' | 'average', number[]>;

  it('follows the policy at each update, is evaluated and exported, and changes nothing else', async () => {
    const plain = await collect(
      train(
        options(abcPolicy().engine, { evaluation: { ...evaluation, average: false }, output: join(directory, 'a') }),
      ),
    );
    const average = { beta: 0.5, output: join(directory, 'ema') };
    const steps = await collect(
      train(options(abcPolicy().engine, { ...run, average, output: join(directory, 'model') })),
    );
    const without = steps.map(one =>
      Object.fromEntries(Object.entries(lasting(one)).filter(([name]) => !name.startsWith('eval_ema/'))),
    );
    expect(without).toEqual(plain.map(lasting));
    expect(tableOf(join(directory, 'model/bigram.json')).logits).toEqual(
      tableOf(join(directory, 'a/bigram.json')).logits,
    );
    // Before training both are the same policy; after it the average lags behind.
    expect(steps[0]!.metrics['eval_ema/eval/reward_mean']).toBe(steps[0]!.metrics['eval/eval/reward_mean']);
    const [policy, averaged] = ['model', 'ema'].map(name => tableOf(join(directory, name, 'bigram.json')));
    expect(averaged!.logits).toEqual(policy!.average);
    const row = ':'.charCodeAt(0) * 260 + 'a'.charCodeAt(0);
    expect(averaged!.logits[row]).toBeGreaterThan(0);
    expect(averaged!.logits[row]).toBeLessThan(policy!.logits[row]!);
  });

  it('is resumed', async () => {
    const expected = await collect(train(options(abcPolicy().engine, run)));
    const checkpoints = { directory: root, every: 3, best: false } as const;
    await collect(train(options(abcPolicy().engine, { ...run, steps: 3, checkpoints })));
    const resumed = { ...run, checkpoints: { ...checkpoints, resume: true } };
    const rest = await collect(train(options(abcPolicy().engine, resumed)));
    expect(rest.map(lasting)).toEqual(expected.slice(4).map(lasting));
  });

  it('is refused where there is none', async () => {
    const { engine } = abcPolicy({ learner: ({ average: _, ...learner }) => learner });
    await expect(collect(train(options(engine, run)))).rejects.toThrow(/keeps no average of its weights: leave train/);
    const off = options(abcPolicy().engine, { evaluation });
    await expect(collect(train(off))).rejects.toThrow(/train\.enable_ema/);
    const beyond = options(abcPolicy().engine, { average: { beta: 1 } });
    await expect(collect(train(beyond))).rejects.toThrow(/train\.ema_beta must be in \[0, 1\), got 1/);
  });
});

describe('evaluations', () => {
  it('compare with the start, task by task, and count greedy attempts by themselves', async () => {
    const evaluation = { tasks: heldOut, samples: 8, temperature: 1, greedy: true };
    const steps = await collect(train(options(abcPolicy().engine, { evaluation, steps: 20 })));
    const [before, after] = [steps[0]!, steps.at(-1)!];
    expect(before.metrics['eval/eval/pass1_gain']).toBeUndefined();
    expect(before.metrics['eval/eval/num_samples']).toBe(16);
    const gain = after.metrics['eval/eval/pass1']! - before.metrics['eval/eval/pass1']!;
    expect(after.metrics['eval/eval/pass1_gain']).toBeCloseTo(gain, 12);
    expect(after.metrics['eval/eval/pass1_gain_low']).toBeGreaterThan(0);
    expect(after.metrics['eval/eval/greedy_pass1']).toBe(1);
    expect(after.evaluation!.version).toBe(40);
    expect(after.metrics['eval/policy_version']).toBe(40);
  });

  it('refuse tokens of other weights', async () => {
    const { engine } = abcPolicy({
      sampler: sampler => ({
        ...sampler,
        generate: async request => {
          const generation = await sampler.generate(request);
          return { ...generation, versions: generation.versions.map(version => Math.max(0, version - 1)) };
        },
      }),
    });
    const run = options(engine, { evaluation: { tasks: heldOut, every: 1 } });
    await expect(collect(train(run))).rejects.toThrow(
      /episode eval:eval:0\/0 was sampled with version 1 of the weights, and version 2 was evaluated/,
    );
  });

  it('on tasks that are trained on are told, with their number', async () => {
    const said: string[] = [];
    const evaluation = { tasks: [...heldOut, { prompt: 'say 3:', label: 'other' }, { prompt: 'say 5:' }] };
    const run = options(abcPolicy().engine, { evaluation, steps: 1, log: message => said.push(message) });
    await collect(train(run));
    expect(said).toEqual([
      '2 of 4 evaluation tasks are trained on, too (the first is eval:2): what they score says little about new tasks',
    ]);
  });
});
