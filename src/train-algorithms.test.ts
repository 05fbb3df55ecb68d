import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { abcPolicy } from '../tests/support/abc-policy.ts';
import { lasting } from '../tests/support/workplace.ts';
import { multiTurn } from './agents/multi-turn.ts';
import { remax } from './algorithms/advantages/remax.ts';
import { tree } from './algorithms/advantages/tree.ts';
import { createAlgorithm } from './algorithms/algorithm.ts';
import { isTruncated, meanScoreWithin } from './algorithms/filters.ts';
import { ppoObjective } from './algorithms/losses/ppo.ts';
import { overlongPenalty } from './algorithms/penalties.ts';
import { gigpo, grpo, gspo, ppo, reinforcePlusPlus } from './algorithms/recipes.ts';
import type { PolicyEngine } from './engines/contracts.ts';
import { mean } from './rollout/metrics.ts';
import { scriptedLearner } from './testing/scripted-learner.ts';
import { tableCritic } from './testing/table-critic.ts';
import { type TrainOptions, train } from './train.ts';
import type { TrainStep } from './training/loop.ts';

/** What the algorithms need beyond GRPO, through `train`, on a policy of three letters. */

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'train-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const tasks = Array.from({ length: 8 }, (_, i) => ({ prompt: `say ${i}:`, label: 'a' }));
const VOCABULARY = 260;
const critic = (more: object = {}) => ({ model: tableCritic(VOCABULARY), learningRate: 0.5, ...more });
const objective = () => ppoObjective({ clip: [0.2, 0.2] });

function options(engine: PolicyEngine, more: Partial<TrainOptions> = {}): TrainOptions {
  return {
    policy: engine,
    tasks,
    ...(more.agent ? {} : { reward: ({ text, label }) => (text.startsWith(label) ? 1 : 0) }),
    algorithm: grpo(),
    groupSize: 4,
    groupsPerStep: 4,
    steps: 6,
    seed: 3,
    optimizer: { learningRate: 2 },
    limits: { maxNewTokens: 4 },
    ...more,
  };
}

async function collect(run: AsyncIterable<TrainStep>): Promise<TrainStep[]> {
  const steps: TrainStep[] = [];
  for await (const step of run) steps.push(step);
  return steps;
}

const run = (more: Partial<TrainOptions>) => collect(train(options(abcPolicy().engine, more)));
const last = (steps: readonly TrainStep[], name: string, count = 5) =>
  mean(steps.slice(-count).map(({ metrics }) => metrics[name]!));

async function weights({ learner }: PolicyEngine): Promise<string> {
  const at = mkdtempSync(join(directory, 'weights-'));
  await learner.save(at);
  return readFileSync(join(at, 'bigram.json'), 'utf8');
}

/** Runs once in one go and once stopped after three of six steps and resumed; both must agree in everything. */
async function resumes(more: () => Partial<TrainOptions>): Promise<TrainStep[]> {
  const root = join(directory, 'checkpoints');
  const whole = abcPolicy();
  const expected = await collect(train(options(whole.engine, more())));
  const stop = new AbortController();
  const steps: TrainStep[] = [];
  const checkpoints = { directory: root };
  for await (const step of train({ ...options(abcPolicy().engine, more()), checkpoints, stop: stop.signal })) {
    steps.push(step);
    if (step.index === 3) stop.abort();
  }
  const second = abcPolicy();
  const resumed = { ...options(second.engine, more()), checkpoints: { directory: root, resume: true } };
  steps.push(...(await collect(train(resumed))));
  expect(steps.map(({ metrics }) => lasting(metrics))).toEqual(expected.map(({ metrics }) => lasting(metrics)));
  expect(await weights(second.engine)).toBe(await weights(whole.engine));
  return expected;
}

describe('a critic', () => {
  it('learns to foresee returns, and the policy learns from it', async () => {
    const steps = await run({ algorithm: ppo(), critic: critic({ learningRate: 3 }), steps: 25 });
    expect(last(steps, 'rollout/reward_mean')).toBeGreaterThan(0.85);
    expect(steps[0]!.metrics['train/explained_variance']).toBe(0);
    expect(steps[0]!.metrics).toMatchObject({ 'train/values': 0, 'train/critic_lr': 3 });
    // Once every answer is right, returns no longer vary and there is nothing to explain.
    const explained = steps.flatMap(({ metrics }) => metrics['train/explained_variance'] ?? []);
    expect(Math.max(...explained)).toBeGreaterThan(0.2);
    expect(steps.at(-1)!.metrics['train/value_clip_ratio']).toBeGreaterThanOrEqual(0);
  });

  it('learns alone for the first steps', async () => {
    const { engine } = abcPolicy();
    const frozen = critic({ freezingSteps: 2 });
    const steps = await collect(train(options(engine, { algorithm: ppo(), critic: frozen, steps: 3 })));
    expect(engine.learner.version).toBe(1);
    expect(frozen.model.version).toBe(3);
    expect(steps.map(({ metrics }) => 'train/policy_loss' in metrics)).toEqual([false, false, true]);
  });

  it('with an adaptive KL in the loss waits for a measurement', async () => {
    const kl = { coefficient: 0.1, target: 0.01, placement: 'loss' } as const;
    const steps = await run({ algorithm: ppo({ kl }), critic: critic({ freezingSteps: 1 }), steps: 3 });
    expect(steps.map(({ metrics }) => metrics['train/kl_coef'])).toEqual([0.1, 0.1, expect.any(Number)]);
  });

  it('is closed with the run that made it, and written beside the policy', async () => {
    const output = join(directory, 'critic');
    let closed = 0;
    const made = tableCritic(VOCABULARY);
    const close = async () => {
      closed += 1;
    };
    const model = () => Object.assign(Object.create(made), { close });
    await run({ algorithm: ppo(), critic: { model, output }, steps: 1 });
    expect(closed).toBe(1);
    expect(readdirSync(output)).toEqual(['critic.json']);
  });

  it('continues from a checkpoint as if never stopped', async () => {
    const optimizer = { learningRate: 1, schedule: 'cosine', batchSize: 8, epochs: 2 } as const;
    await resumes(() => ({ algorithm: ppo({ lambda: 0.9 }), critic: critic({ schedule: 'linear' }), optimizer }));
  });

  it('is refused where there is nothing for it to do, and missed where there is', async () => {
    await expect(run({ critic: critic() })).rejects.toThrow(/'group_norm' has no critic/);
    await expect(run({ algorithm: ppo() })).rejects.toThrow(/'gae' needs a critic/);
    await expect(run({ algorithm: ppo(), critic: critic({ freezingSteps: -1 }) })).rejects.toThrow(/freezing_steps/);
  });
});

describe('a reference that follows the policy', () => {
  const kl = { coefficient: 0.5, placement: 'loss' } as const;

  it('is the policy of some steps ago, or their moving average', async () => {
    const frozen = await run({ algorithm: grpo({ kl }), steps: 12 });
    const copied = await run({ algorithm: grpo({ kl }), steps: 12, reference: { every: 3 } });
    const averaged = await run({ algorithm: grpo({ kl }), steps: 12, reference: { beta: 0.5 } });
    // After each third step the divergence starts from 0 again (log-probs travel as float32).
    expect(copied.map(({ metrics }) => Math.abs(metrics['train/kl']!) < 1e-9)).toEqual(
      Array.from({ length: 12 }, (_, i) => i % 3 === 0),
    );
    expect(last(averaged, 'train/kl', 8)).toBeLessThan(last(frozen, 'train/kl', 8));
    expect(last(averaged, 'train/kl', 8)).toBeGreaterThan(0);
  });

  it('continues from a checkpoint as if never stopped', async () => {
    await resumes(() => ({ algorithm: grpo({ kl }), reference: { every: 2, beta: 0.25 } }));
  });

  it('is refused without a KL term', async () => {
    await expect(run({ reference: { every: 2 } })).rejects.toThrow(/set algo\.kl\.init_coef/);
    await expect(run({ algorithm: grpo({ kl }), reference: { beta: 1 } })).rejects.toThrow(
      /ema_beta must be in \[0, 1\)/,
    );
  });
});

describe('remax', () => {
  it('learns from one sample a task against the greedy answer', async () => {
    const algorithm = createAlgorithm({ name: 'remax', estimator: remax(), objective: objective() });
    const steps = await run({ algorithm, groupSize: 1, groupsPerStep: 16, steps: 25 });
    expect(last(steps, 'rollout/reward_mean')).toBeGreaterThan(0.85);
    expect(steps[0]!.metrics['rollout/num_samples']).toBe(16);
    expect(steps[0]!.episodes).toHaveLength(32);
    // What is always answered alike has nothing to beat.
    expect(last(steps, 'rollout/greedy_reward_mean')).toBe(1);
  });
});

describe('dynamic sampling', () => {
  const selection = (more = {}) => ({ filter: meanScoreWithin(0, 1), ...more });

  it('trains on groups with something to learn, and continues from a checkpoint with what was waiting', async () => {
    const steps = await resumes(() => ({ selection: selection({ oversampling: 2 }) }));
    for (const { metrics } of steps) expect(metrics['train/zero_variance_groups']).toBe(0);
    expect(Math.max(...steps.map(({ metrics }) => metrics['rollout/groups_waiting']!))).toBeGreaterThan(0);
  });

  it('gives the same run in lockstep, in whatever order environments answer', async () => {
    const dawdling = () =>
      multiTurn(() => ({
        reset: ({ prompt }) => ({ observation: prompt }),
        async step({ actionText, label, turn }) {
          for (let ticks = Math.floor(Math.random() * 6); ticks > 0; ticks--) await new Promise(setImmediate);
          return { reward: actionText.startsWith(label) ? 1 : 0, done: turn === 1, feedback: '!' };
        },
      }));
    const filter = meanScoreWithin(0, 2);
    const one = () =>
      run({ agent: dawdling(), deterministic: true, selection: { filter, oversampling: 1.5 }, steps: 4 });
    const [first, second] = [await one(), await one()];
    expect(first.map(({ metrics }) => lasting(metrics))).toEqual(second.map(({ metrics }) => lasting(metrics)));
  });

  it('judges groups as they will be compared', async () => {
    const filters = [{ name: 'all', finds: () => true, effect: 'remove' as const }];
    const steps = await run({
      selection: selection({ maxOversampling: 1 }),
      curation: { filters },
      steps: 1,
      log: () => undefined,
    });
    expect(steps[0]!.metrics['rollout/dynamic_filtering_pass_rate']).toBe(0);
  });
});

describe('penalties and filters', () => {
  it('make long answers rare', async () => {
    const reward = () => 0;
    const penalties = [{ name: 'overlong', apply: overlongPenalty({ maxTokens: 4, buffer: 3 }) }];
    const steps = await run({ reward, curation: { penalties }, steps: 25 });
    expect(last(steps, 'rollout/response_length_mean')).toBeLessThan(1.5);
    expect(steps[0]!.metrics['train/penalty_overlong']).toBeLessThan(-0.3);
    expect(steps[0]!.metrics['rollout/reward_mean']).toBe(0);
  });

  it('mask tokens out of the loss, and out of the baseline by removal', async () => {
    const learn = async (effect: 'mask' | 'remove') => {
      const learner = scriptedLearner({ learner: abcPolicy().bigram.learner });
      const { engine } = abcPolicy({ learner: () => learner });
      const filters = [{ name: 'truncated', finds: isTruncated, effect }];
      const [step] = await collect(train(options(engine, { curation: { filters }, steps: 1 })));
      const call = learner.calls.find(({ method }) => method === 'forwardBackward');
      const { inputs } = call!.args[0] as { inputs: Record<string, readonly Float32Array[]> };
      return { metrics: step!.metrics, episodes: step!.episodes, weights: inputs.weights! };
    };
    const masked = await learn('mask');
    const cut = masked.episodes.map(isTruncated);
    expect(new Set(cut)).toEqual(new Set([true, false]));
    const share = cut.filter(Boolean).length / cut.length;
    expect(masked.metrics).toMatchObject({ 'train/masked_episodes': share, 'train/filtered_truncated': share });
    expect(masked.weights.map(row => row.every(weight => weight === 0))).toEqual(cut);
    const removed = await learn('remove');
    expect(removed.metrics['train/removed_episodes']).toBe(share);
    expect(removed.weights.length).toBeLessThan(cut.length);
  });

  it('that mask everything make no update', async () => {
    const { engine } = abcPolicy();
    const filters = [{ name: 'all', finds: () => true, effect: 'mask' as const }];
    const steps = await collect(train(options(engine, { curation: { filters }, steps: 2 })));
    expect(engine.learner.version).toBe(0);
    expect('train/policy_loss' in steps[0]!.metrics).toBe(false);
  });
});

describe('rows', () => {
  const twoTurns = () =>
    multiTurn(() => ({
      reset: ({ prompt }) => ({ observation: prompt }),
      step: ({ actionText, label, turn }) => ({
        reward: actionText.startsWith(label) ? 1 : 0,
        done: turn === 1,
        feedback: '!',
      }),
    }));

  it('of turns give the update of the episode', async () => {
    const [whole, split] = [abcPolicy(), abcPolicy()];
    const agent = twoTurns();
    const one = await collect(train(options(whole.engine, { agent, steps: 1 })));
    const other = await collect(train(options(split.engine, { agent, steps: 1, turnRows: true })));
    const [a, b] = [JSON.parse(await weights(whole.engine)), JSON.parse(await weights(split.engine))];
    // Float32 weights of the same tokens, summed in another order.
    for (const [i, logit] of a.logits.entries()) expect(b.logits[i]).toBeCloseTo(logit, 6);
    expect(other[0]!.metrics['train/policy_loss']).toBeCloseTo(one[0]!.metrics['train/policy_loss']!, 6);
  });

  it('of turns are sequences of their own to sequence-level losses', async () => {
    const optimizer = { learningRate: 2, epochs: 4 };
    const agent = twoTurns();
    const [whole, split] = [
      await run({ agent, optimizer, algorithm: gspo(), steps: 1 }),
      await run({ agent, optimizer, algorithm: gspo(), steps: 1, turnRows: true }),
    ];
    expect(split[0]!.metrics['train/policy_loss']).not.toBeCloseTo(whole[0]!.metrics['train/policy_loss']!, 6);
  });

  it('of turns are refused where whole attempts are compared', async () => {
    const algorithm = createAlgorithm({ name: 'tree', estimator: tree(), objective: objective() });
    await expect(run({ algorithm, turnRows: true })).rejects.toThrow(/cannot be cut into one row a turn/);
  });
});

describe('the log-linear proximal policy', () => {
  it('needs no forward pass and equals the behaviour policy on fresh tokens', async () => {
    const losses: (number | undefined)[] = [];
    for (const ratioAgainst of ['behaviour', 'loglinear'] as const) {
      const learner = scriptedLearner({ learner: abcPolicy().bigram.learner });
      const { engine } = abcPolicy({ learner: () => learner });
      const optimizer = { learningRate: 2, batchSize: 4 };
      const algorithm = reinforcePlusPlus({ ratioAgainst });
      const steps = await collect(train(options(engine, { algorithm, optimizer, steps: 2 })));
      expect(learner.calls.some(({ method }) => method === 'forward')).toBe(false);
      losses.push(steps.at(-1)!.metrics['train/policy_loss']);
    }
    expect(losses[1]).toBeCloseTo(losses[0]!, 9);
  });

  it('interpolates for groups that waited', async () => {
    const learner = scriptedLearner({ learner: abcPolicy().bigram.learner });
    const policy = abcPolicy({ learner: () => learner });
    const selection = { filter: () => true, oversampling: 3 };
    const algorithm = reinforcePlusPlus({ ratioAgainst: 'loglinear' });
    const optimizer = { learningRate: 1, batchSize: 8 };
    await collect(train(options(policy.engine, { algorithm, selection, optimizer, steps: 2 })));
    const alphas = learner.calls
      .filter(({ method }) => method === 'forwardBackward')
      .map(({ args }) => (args[0] as { inputs: Record<string, readonly Float32Array[]> }).inputs.alpha!)
      .map(rows => [...new Set(rows.flatMap(row => [...row]))]);
    // Two updates a step: tokens of version 0 in the second step, at versions 2 (the proximal one) and 3.
    expect(alphas).toEqual([[0], [0], [1], [expect.closeTo(2 / 3, 6)]]);
  });
});

describe('rewards that are not finite', () => {
  const careless = (value: number, every: number) => {
    let calls = 0;
    return { reward: () => (++calls % every === 0 ? value : calls % 2) };
  };

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'fail their episodes, which are counted and named, and nothing is learned from them: %d',
    async value => {
      const { engine } = abcPolicy();
      const [step] = await collect(train(options(engine, { ...careless(value, 8), steps: 1 })));
      const failed = step!.episodes.filter(({ outcome }) => outcome.kind === 'failed');
      expect(failed).toHaveLength(2);
      for (const { outcome } of failed) {
        expect(outcome).toMatchObject({ failure: 'reward', message: expect.stringContaining(String(value)) });
      }
      expect(step!.metrics).toMatchObject({ 'rollout/failed': 2, 'rollout/failed_reward': 2 });
      expect(Object.entries(step!.metrics).filter(([, metric]) => !Number.isFinite(metric))).toEqual([]);
    },
  );

  it('stop the run where there are too many, by name', async () => {
    await expect(run(careless(Number.NaN, 1))).rejects.toThrow(/16 of 16 episodes failed.*reward.*NaN/s);
  });
});

it('docs/metrics.md names every metric', async () => {
  const page = readFileSync(new URL('../docs/metrics.md', import.meta.url), 'utf8');
  const remaxed = createAlgorithm({ name: 'remax', estimator: remax(), objective: objective() });
  const penalties = [{ name: 'overlong', apply: overlongPenalty({ maxTokens: 4, buffer: 3 }) }];
  const filters = [{ name: 'truncated', finds: isTruncated, effect: 'remove' as const }];
  const runs = [
    run({ algorithm: ppo(), critic: critic(), steps: 1 }),
    run({ algorithm: remaxed, selection: { filter: () => true }, curation: { penalties, filters }, steps: 1 }),
    run({ algorithm: gigpo(), steps: 1 }),
  ];
  const names = (await Promise.all(runs)).flat().flatMap(({ metrics }) => Object.keys(metrics));
  const documented = (name: string) => page.includes(`| \`${name.replace(/(penalty|filtered)_.*/, '$1_<name>')}\``);
  expect(names.filter(name => !documented(name))).toEqual([]);
});

it('a checkpoint holds a manifest and no critic where there is none', async () => {
  const root = join(directory, 'checkpoints');
  await run({ steps: 1, checkpoints: { directory: root, every: 1 } });
  expect(existsSync(join(root, 'step-00000001', 'learner'))).toBe(true);
  expect(readdirSync(join(root, 'step-00000001')).sort()).toEqual([
    'backlog.jsonl',
    'learner',
    'manifest.json',
    'trainer.json',
  ]);
});
