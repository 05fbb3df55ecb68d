import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { beforeAll, expect, it } from 'vitest';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { grpo } from '../../src/algorithms/recipes.ts';
import { type OnnxEngine, onnxPolicy } from '../../src/engines/onnx/index.ts';
import type { Environment } from '../../src/envs/contracts.ts';
import { train } from '../../src/train.ts';
import { sft } from '../../src/training/sft.ts';
import { root } from '../support/process.ts';
import { lasting, workplace, writeTinyModel } from '../support/workplace.ts';

/** Design 7: same seed, same run, whatever the order in which environments answer; on the real engine. */

const tiny = join(workplace(), 'model');
beforeAll(() => writeTinyModel(tiny));
/** 0.4 million parameters: large enough for the runtime to divide its matrix products among threads. */
const small = join(root, 'examples/calculator-agent/model');

const tasks = ['1+2', '12', '3*4-5', '60-15', '9', '7.5/3'].map(prompt => ({ prompt }));

/** Environments that answer in an order drawn anew from `order`; `answered` is told which one answered. */
function shuffled(order: number, answered: (who: string) => void) {
  const random = xoroshiro128plus(order);
  let made = 0;
  return multiTurn((): Environment => {
    const name = `${made++}`;
    /** Puts a random number of turns of the event loop between a call and its answer. */
    const delay = async (what: string) => {
      for (let turns = uniformInt(random, 0, 20); turns > 0; turns--) await new Promise(setImmediate);
      answered(`${name} ${what}`);
    };
    return {
      async reset({ prompt }) {
        await delay('reset');
        return { observation: prompt };
      },
      async step({ actionText, turn }) {
        await delay(`step ${turn}`);
        const reward = [...actionText].filter(character => character === 'a').length / 4;
        // Some episodes are over before others, so that turns of different depth are under way together.
        return { reward, done: turn === 2 || actionText.startsWith('c'), feedback: '?' };
      },
    };
  });
}

async function run({ seed = 5, order = 1 }) {
  const answers: string[] = [];
  const policy = await onnxPolicy({ model: tiny, threads: 1, maxRows: 8, prefillTokens: 32 });
  try {
    const metrics: unknown[] = [];
    const job = train({
      policy,
      tasks,
      agent: shuffled(order, who => answers.push(who)),
      algorithm: grpo({ kl: { coefficient: 0.01 } }),
      groupSize: 4,
      groupsPerStep: 4,
      steps: 4,
      seed,
      deterministic: true,
      optimizer: { learningRate: 1e-2, batchSize: 8, epochs: 2 },
      limits: { maxNewTokens: 4 },
      evaluation: { tasks: tasks.slice(0, 2), samples: 3, every: 2 },
    });
    for await (const step of job) metrics.push(lasting(step.metrics));
    return { outcome: { metrics, weights: await (policy.learner as OnnxEngine).weights() }, answers };
  } finally {
    await policy.close();
  }
}

it('same seed, same metrics and weights, whatever the order in which environments answer', async () => {
  const first = await run({ order: 1 });
  const second = await run({ order: 2 });
  expect(second.answers).not.toEqual(first.answers);
  expect([...second.answers].sort()).toEqual([...first.answers].sort());
  expect(second.outcome).toEqual(first.outcome);

  const other = await run({ seed: 6 });
  expect(other.outcome.weights).not.toEqual(first.outcome.weights);
});

it('gradients and weights are the same in every repetition, with one thread and with two', async () => {
  const random = xoroshiro128plus(7);
  const examples = Array.from({ length: 48 }, (_, i) => {
    const tokens = Int32Array.from({ length: 8 + i }, () => uniformInt(random, 0, 27));
    return [{ tokens, predict: Uint8Array.from(tokens, (_, t) => (t > 2 ? 1 : 0)) }];
  });
  const outcomes = [];
  for (const threads of [1, 2, 2]) {
    const policy = await onnxPolicy({ model: small, threads, maxTokens: 1024 });
    const metrics: unknown[] = [];
    const job = sft({ learner: policy.learner, examples, steps: 3, batchSize: 32, seed: 1 });
    for await (const step of job) metrics.push(lasting(step.metrics));
    outcomes.push({ metrics, weights: await (policy.learner as OnnxEngine).weights() });
    await policy.close();
  }
  expect(outcomes[1]).toEqual(outcomes[0]);
  expect(outcomes[2]).toEqual(outcomes[0]);
});
