import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { abcPolicy } from '../../tests/support/abc-policy.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { exampleSequences } from './conversations.ts';
import { meanLoss, type SftOptions, sft } from './sft.ts';
import { type SupervisedStep, supervisedSteps } from './supervised.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sft-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const renderer = byteRenderer();
const examples = ['a', 'ab', 'abc', 'abcab', 'abca'].map(response =>
  exampleSequences({ prompt: 'say:', response }, renderer),
);

function options(more: Partial<SftOptions> = {}): SftOptions {
  const { learner } = abcPolicy().engine;
  return { learner, examples, steps: 12, batchSize: 2, seed: 1, optimizer: { learningRate: 3 }, ...more };
}

async function collect(run: AsyncIterable<SupervisedStep>): Promise<SupervisedStep[]> {
  const steps: SupervisedStep[] = [];
  for await (const step of run) steps.push(step);
  return steps;
}

const lasting = (steps: readonly SupervisedStep[]) =>
  steps.map(({ metrics }) => Object.entries(metrics).filter(([name]) => !name.startsWith('timing/')));

describe('sft', () => {
  it('lowers the loss, evaluated before, during and after', async () => {
    const steps = await collect(sft(options({ heldOut: examples, evaluateEvery: 5 })));
    const losses = steps.flatMap(({ index, metrics }) =>
      metrics['eval/gpt_loss'] === undefined ? [] : [[index, metrics['eval/gpt_loss']] as const],
    );
    expect(losses.map(([index]) => index)).toEqual([0, 5, 10, 12]);
    // Four equally probable tokens; float32 log-probs.
    expect(losses[0]![1]).toBeCloseTo(Math.log(4), 6);
    expect(losses.at(-1)![1]).toBeLessThan(0.75 * Math.log(4));
    expect(steps[1]!.metrics).toMatchObject({ 'train/lr': 3, 'train/gpt_loss': expect.closeTo(Math.log(4), 6) });
  });

  it('averages over tokens, however they are batched', async () => {
    const { learner } = abcPolicy().engine;
    await learner.forwardBackward(
      { sequences: examples[4]!, temperature: 1, inputs: { weights: [new Float32Array(5).fill(1)] } },
      {
        key: 'x',
        inputs: ['weights'],
        entropy: false,
        build: (ops, { logprobs }) => ({ loss: ops.sum(logprobs), metrics: {} }),
      },
    );
    await learner.optimizerStep({ lr: 1 });
    const { logprobs } = await learner.forward({ sequences: examples.flat(), temperature: 1 });
    const all = logprobs.flatMap(row => [...row]);
    const expected = -all.reduce((sum, value) => sum + value, 0) / all.length;
    for (const batchSize of [1, 2, 5]) expect(await meanLoss(learner, examples, batchSize)).toBeCloseTo(expected, 12);
  });

  it('counts steps by passes, leaving an incomplete batch out', () => {
    expect(supervisedSteps(10, 4, 1)).toBe(2);
    expect(supervisedSteps(10, 4, 2)).toBe(5);
    expect(supervisedSteps(3, 4, 1)).toBe(1);
  });

  it('stopped and resumed it ends as if it had never stopped', async () => {
    const whole = options();
    const expected = await collect(sft(whole));
    const checkpoints = { directory: join(directory, 'checkpoints'), every: 3, resume: true };
    const stop = new AbortController();
    const given: SupervisedStep[] = [];
    for await (const step of sft(options({ checkpoints, stop: stop.signal }))) {
      given.push(step);
      if (step.index === 4) stop.abort();
    }
    const resumed = options({ checkpoints });
    given.push(...(await collect(sft(resumed))));
    expect(lasting(given)).toEqual(lasting(expected));
    const bytes = async ({ learner }: SftOptions, name: string) => {
      await learner.save(join(directory, name));
      return readFileSync(join(directory, name, 'bigram.json'), 'utf8');
    };
    expect(await bytes(resumed, 'resumed')).toBe(await bytes(whole, 'whole'));
  });

  it('stops at a loss that is not a number, naming the step', async () => {
    const { learner } = abcPolicy({
      learner: of => ({ ...of, forwardBackward: async () => ({ loss: Number.NaN, gpt_loss: 1 }) }),
    }).engine;
    await expect(collect(sft(options({ learner })))).rejects.toThrow(/stopped at step 1: loss is NaN/);
    expect(learner.version).toBe(0);
  });
});
