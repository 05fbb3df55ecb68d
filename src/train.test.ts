import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { abcPolicy } from '../tests/support/abc-policy.ts';
import type { Executor } from './agents/contracts.ts';
import { multiTurn } from './agents/multi-turn.ts';
import { grpo, reinforceBaseline } from './algorithms/recipes.ts';
import type { PolicyEngine, Sampler } from './engines/contracts.ts';
import type { Environment } from './envs/contracts.ts';
import { mean } from './rollout/metrics.ts';
import { scriptedLearner } from './testing/scripted-learner.ts';
import type { EpisodesRecord, Tracker } from './tracking/contracts.ts';
import { type TrainOptions, train } from './train.ts';
import type { TrainStep } from './training/loop.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'train-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const tasks = Array.from({ length: 8 }, (_, i) => ({ prompt: `say ${i}:`, label: 'a' }));

/** Rewards answers that begin with the label. */
const reward: NonNullable<TrainOptions['reward']> = ({ text, label }) => (text.startsWith(label) ? 1 : 0);

function options(engine: TrainOptions['policy'], more: Partial<TrainOptions> = {}): TrainOptions {
  return {
    policy: engine,
    tasks,
    ...(more.agent ? {} : { reward }),
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

/** Metrics without those that measure time. */
function lasting({ metrics }: Pick<TrainStep, 'metrics'>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith('timing/')));
}

async function weights({ learner }: PolicyEngine, name: string): Promise<string> {
  await learner.save(join(directory, name));
  return readFileSync(join(directory, name, 'bigram.json'), 'utf8');
}

describe('train', () => {
  it('learns, on-policy, and evaluates before, during and after', async () => {
    const { engine, bigram } = abcPolicy();
    const evaluation = { tasks: [{ prompt: 'say 9:', label: 'a' }], samples: 8, temperature: 1, every: 10 };
    const steps = await collect(train(options(engine, { steps: 25, evaluation, output: join(directory, 'model') })));
    expect(steps.map(({ index }) => index)).toEqual(Array.from({ length: 26 }, (_, i) => i));
    expect(steps.filter(step => step.evaluation).map(({ index }) => index)).toEqual([0, 10, 20, 25]);
    const rewards = steps.slice(1).map(({ metrics }) => metrics['rollout/reward_mean']!);
    expect(rewards[0]).toBeLessThan(0.6);
    expect(mean(rewards.slice(-5))).toBeGreaterThan(0.9);
    expect(steps[0]!.metrics['eval/eval/pass1']).toBeLessThan(0.6);
    expect(steps[25]!.metrics['eval/eval/pass1']).toBeGreaterThan(0.85);
    expect(bigram.probabilities(':'.charCodeAt(0))['a'.charCodeAt(0)]).toBeGreaterThan(0.9);
    // Sampler and learner of the bigram policy compute log-probs with the same code.
    for (const { metrics } of steps.slice(1)) expect(metrics['train/mismatch_max']).toBe(0);
    expect(steps[1]!.metrics).toMatchObject({
      'train/actor_lr': 2,
      'train/ppo_clip_ratio': 0,
      'rollout/num_samples': 16,
    });
    expect(readdirSync(join(directory, 'model'))).toEqual(['bigram.json']);
  });

  it('makes mini-batches, passes and a schedule of the whole run', async () => {
    const { engine } = abcPolicy();
    const optimizer = { learningRate: 1, schedule: 'linear', batchSize: 8, epochs: 2 } as const;
    const steps = await collect(train(options(engine, { steps: 3, optimizer, algorithm: reinforceBaseline() })));
    expect(engine.learner.version).toBe(3 * 2 * 2);
    expect(steps.map(({ metrics }) => metrics['train/actor_lr'])).toEqual([9 / 12, 5 / 12, 1 / 12]);
  });

  it('keeps to the reference with a KL term, in the reward and in the loss', async () => {
    for (const placement of ['reward', 'loss'] as const) {
      const free = abcPolicy();
      await collect(train(options(free.engine, { steps: 15 })));
      const held = abcPolicy();
      const kl = { coefficient: 1, placement };
      const steps = await collect(train(options(held.engine, { steps: 15, algorithm: grpo({ kl }) })));
      const a = 'a'.charCodeAt(0);
      expect(held.bigram.probabilities(58)[a]).toBeLessThan(free.bigram.probabilities(58)[a]! - 0.1);
      expect(steps.at(-1)!.metrics['train/kl']).toBeGreaterThan(0);
      expect(steps.at(-1)!.metrics['train/kl_coef']).toBe(1);
    }
  });
});

it('docs/metrics.md names every metric', async () => {
  const page = readFileSync(new URL('../docs/metrics.md', import.meta.url), 'utf8');
  const names = new Set<string>();
  const agent = multiTurn(() => ({
    reset: ({ prompt }) => ({ observation: prompt }),
    step: () => ({ reward: 1, done: true }),
  }));
  const kl = { coefficient: 0.1, placement: 'loss' } as const;
  const correction = { type: 'tis', low: 0.5, high: 5 } as const;
  for (const algorithm of [grpo({ kl, correction, entropy: 0 }), reinforceBaseline({ dualClip: 3 })]) {
    const { engine } = abcPolicy();
    const evaluation = { tasks, samples: 2 };
    for (const { metrics } of await collect(train(options(engine, { agent, algorithm, steps: 1, evaluation })))) {
      for (const name of Object.keys(metrics)) names.add(name.replace('eval/eval/', 'eval/<source>/'));
    }
  }
  expect([...names].filter(name => !page.includes(`| \`${name}\``))).toEqual([]);
});

describe('determinism', () => {
  /** Two turns; the environment takes a random while to answer, so requests arrive in another order every time. */
  const dawdling = (): Executor =>
    multiTurn((): Environment => {
      const dawdle = async () => {
        for (let ticks = Math.floor(Math.random() * 6); ticks > 0; ticks--) await new Promise(setImmediate);
      };
      return {
        async reset(task) {
          await dawdle();
          return { observation: task.prompt };
        },
        async step({ actionText, label, turn }) {
          await dawdle();
          const result = { reward: actionText.startsWith(label) ? 1 : 0, done: turn === 1, feedback: '!' };
          return { ...result, metrics: { length: actionText.length } };
        },
      };
    });

  /** What a request gets depends on how many came before it, as rounding does in a sampler that computes in batches. */
  const orderSensitive = (sampler: Sampler): Sampler => {
    let arrivals = 0;
    return {
      ...sampler,
      generate: request => sampler.generate({ ...request, seed: (request.seed + arrivals++) >>> 0 }),
    };
  };

  async function outcome(deterministic: boolean, name: string) {
    const { engine } = abcPolicy({ sampler: orderSensitive });
    const agent = dawdling();
    const evaluation = { tasks: tasks.slice(0, 3), samples: 2, every: 2 };
    const steps = await collect(train(options(engine, { agent, deterministic, evaluation, steps: 4 })));
    return { metrics: steps.map(lasting), weights: await weights(engine, name) };
  }

  it('same seed, same metrics and weights, whatever the order in which environments answer', async () => {
    const first = await outcome(true, 'a');
    expect(await outcome(true, 'b')).toEqual(first);
    // The arrangement would show a difference if requests were not held back.
    expect(await outcome(false, 'c')).not.toEqual(first);
  });
});

describe('checkpoints', () => {
  it('a run that was stopped and resumed ends as one that was not', async () => {
    const evaluation = { tasks: tasks.slice(0, 2), every: 3 };
    const optimizer = { learningRate: 2, schedule: 'cosine', batchSize: 8, epochs: 2 } as const;
    const algorithm = () => grpo({ kl: { coefficient: 0.1, target: 0.05, horizon: 100 } });
    const whole = abcPolicy();
    const expected = await collect(train(options(whole.engine, { evaluation, optimizer, algorithm: algorithm() })));

    const root = join(directory, 'checkpoints');
    const stop = new AbortController();
    const given: TrainStep[] = [];
    const first = abcPolicy();
    const stopped = options(first.engine, {
      evaluation,
      optimizer,
      algorithm: algorithm(),
      checkpoints: { directory: root },
    });
    for await (const step of train({ ...stopped, stop: stop.signal })) {
      given.push(step);
      if (step.index === 3) stop.abort();
    }
    expect(readdirSync(root)).toEqual(['step-00000003']);

    const second = abcPolicy();
    const checkpoints = { directory: root, every: 1, keep: 2, resume: true };
    const resumed = options(second.engine, { evaluation, optimizer, algorithm: algorithm(), checkpoints });
    given.push(...(await collect(train(resumed))));
    expect(given.map(({ index }) => index)).toEqual(expected.map(({ index }) => index));
    expect(given.map(lasting)).toEqual(expected.map(lasting));
    expect(await weights(second.engine, 'resumed')).toBe(await weights(whole.engine, 'whole'));
    // The evaluation after step 3 is the best, and as such kept beside the two newest.
    expect(expected.findLast(({ evaluation }) => evaluation)!.metrics['eval/eval/pass1']).toBeLessThanOrEqual(
      expected[3]!.metrics['eval/eval/pass1']!,
    );
    expect(readdirSync(root).sort()).toEqual(['step-00000003', 'step-00000005', 'step-00000006']);

    const other = abcPolicy();
    await expect(collect(train({ ...resumed, policy: other.engine, seed: 4 }))).rejects.toThrow(
      /seed 3, this one has 4/,
    );
  });

  it('a loss that is not a number stops the run, names the step and keeps the last good weights', async () => {
    const root = join(directory, 'checkpoints');
    let calls = 0;
    const { engine } = abcPolicy({
      learner: learner => ({
        ...learner,
        get version() {
          return learner.version;
        },
        forwardBackward: async (batch, loss) => {
          const metrics = await learner.forwardBackward(batch, loss);
          return ++calls === 3 ? { ...metrics, loss: Number.NaN } : metrics;
        },
      }),
    });
    await expect(collect(train(options(engine, { checkpoints: { directory: root } })))).rejects.toThrow(
      /training stopped at step 3: loss is NaN.*The last good weights are in .*last-good/,
    );
    const kept = JSON.parse(readFileSync(join(root, 'last-good', 'bigram.json'), 'utf8'));
    expect(kept.version).toBe(2);
  });
});

describe('the end of a run', () => {
  it('break closes what the run owns: agent, trackers, the policy it made', async () => {
    const { engine } = abcPolicy();
    const closed: string[] = [];
    const agent: Executor = {
      ...multiTurn(() => ({
        reset: ({ prompt }) => ({ observation: prompt }),
        step: () => ({ reward: 0, done: true }),
      })),
      close: async () => {
        closed.push('agent');
      },
    };
    const tracker: Tracker = { name: 'test', log: () => undefined, close: () => void closed.push('tracker') };
    for await (const step of train(options(() => engine, { agent, trackers: [tracker], steps: 100 }))) {
      if (step.index === 2) break;
    }
    expect(closed).toEqual(['agent', 'tracker']);
    expect(engine.closed).toBe(1);
    const lent = abcPolicy();
    await collect(train(options(lent.engine, { steps: 1 })));
    expect(lent.engine.closed).toBe(0);
  });

  it('an abort in the middle of a step rejects with its reason and closes environments', async () => {
    const { engine } = abcPolicy();
    const abort = new AbortController();
    let open = 0;
    const agent = multiTurn(() => ({
      reset: ({ prompt }) => {
        open += 1;
        return { observation: prompt };
      },
      step: () => {
        abort.abort(new Error('enough'));
        return new Promise(() => undefined);
      },
      close: () => {
        open -= 1;
      },
    }));
    await expect(collect(train(options(() => engine, { agent, signal: abort.signal })))).rejects.toThrow('enough');
    expect(open).toBe(0);
    expect(engine.closed).toBe(1);
  });

  it('too many failures stop the run; a tracker that fails does not', async () => {
    const { engine } = abcPolicy();
    const agent = multiTurn(() => ({
      reset: () => {
        throw new Error('no power');
      },
      step: () => ({ reward: 0, done: true }),
    }));
    const kept: EpisodesRecord[] = [];
    const keeper: Tracker = {
      name: 'keeper',
      log: () => undefined,
      episodes: r => void kept.push(r),
      close: () => undefined,
    };
    await expect(collect(train(options(engine, { agent, trackers: [keeper] })))).rejects.toThrow(
      /16 of 16 episodes failed.*rollout\.max_failure_rate 0\.5.*\n.*16 x environment: .*no power/,
    );
    expect(kept.map(({ step, phase, episodes }) => [step, phase, episodes.length])).toEqual([[1, 'train', 16]]);
    expect(kept[0]!.episodes.every(({ outcome }) => outcome.kind === 'failed')).toBe(true);
    const said: string[] = [];
    const log = () => Promise.reject(new Error('disk full'));
    const trackers = [{ name: 'broken', log, close: () => undefined }];
    await collect(train(options(engine, { trackers, steps: 2, log: message => said.push(message) })));
    expect(said).toEqual(['tracker broken: disk full; what was logged at step 1 is lost there; the run goes on']);
  });

  it('steps without anything to learn from change nothing', async () => {
    const learner = scriptedLearner();
    const { engine } = abcPolicy({ learner: () => learner });
    const agent = multiTurn(() => ({
      reset: ({ prompt }, { seed: _ }) => ({ observation: prompt }),
      step: ({ task }) => {
        if (task.id.length > 0) throw new Error('always');
        return { reward: 0, done: true };
      },
    }));
    const steps = await collect(train(options(engine, { agent, steps: 1, maxFailureRate: 1 })));
    expect(steps[0]!.metrics).toMatchObject({ 'rollout/groups_dropped': 4, 'rollout/failed_environment': 16 });
    expect(learner.calls).toEqual([]);
  });

  it('refuses options that make no sense', async () => {
    const { engine } = abcPolicy();
    await expect(collect(train(options(engine, { groupSize: 1 })))).rejects.toThrow(/n_samples_per_prompt/);
    const twins = [
      { prompt: 'x', id: 'same' },
      { prompt: 'y', id: 'same' },
    ];
    await expect(collect(train(options(engine, { tasks: twins })))).rejects.toThrow(/two tasks have the id "same"/);
    const { reward: _, ...without } = options(engine);
    await expect(collect(train(without))).rejects.toThrow(/neither agent nor reward/);
  });
});
