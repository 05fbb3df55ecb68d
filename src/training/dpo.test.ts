import { describe, expect, it } from 'vitest';
import { abcPolicy } from '../../tests/support/abc-policy.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { type DpoOptions, dpo } from './dpo.ts';
import { preferencePair } from './preferences.ts';

const renderer = byteRenderer();
const pairs = [
  ['a', 'b'],
  ['ab', 'ba'],
  ['abc', 'c'],
  ['a', 'cc'],
].map(([chosen, rejected]) =>
  preferencePair({ prompt: 'say:', chosen: chosen!, rejected: rejected!, margin: 0 }, renderer),
);

async function run(more: Partial<DpoOptions> = {}) {
  const { learner } = abcPolicy().engine;
  const shared = { learner, examples: pairs, heldOut: pairs, steps: 6, batchSize: 4, seed: 1 };
  const steps: Readonly<Record<string, number>>[] = [];
  for await (const { metrics } of dpo({ ...shared, optimizer: { learningRate: 5 }, ...more })) steps.push(metrics);
  return { learner, first: steps[0]!, second: steps[1]!, last: steps.at(-1)! };
}

describe('dpo', () => {
  it('begins at log 2 with no difference, and learns to prefer the chosen answers', async () => {
    const { first, second, last } = await run();
    expect(first).toMatchObject({
      'eval/loss': expect.closeTo(Math.log(2), 6),
      'eval/acc': 0,
      'eval/chosen_reward': 0,
    });
    expect(second['train/loss']).toBeCloseTo(Math.log(2), 6);
    expect(last['eval/acc']).toBeCloseTo(1, 6);
    expect(last['eval/chosen_reward']).toBeGreaterThan(last['eval/reject_reward']!);
    expect(last['eval/loss']).toBeLessThan(first['eval/loss']!);
  });

  it('evaluates what it trains on, however pairs are batched', async () => {
    for (const loss of [{}, { ipo: true }, { labelSmoothing: 0.2 }, { nllCoefficient: 0.5 }]) {
      const { learner } = await run({ loss, steps: 2 });
      const shared = { learner, examples: pairs, heldOut: pairs, seed: 1, loss };
      const whole = await dpo({ ...shared, steps: 1, batchSize: 4 }).next();
      const parts = await dpo({ ...shared, steps: 1, batchSize: 3 }).next();
      const trained = dpo({ ...shared, heldOut: undefined, steps: 1, batchSize: 4 });
      const step = (await trained.next()).value!.metrics;
      for (const [name, value] of Object.entries(whole.value!.metrics)) {
        expect(parts.value!.metrics[name]).toBeCloseTo(value, 10);
        // The bigram policy computes in float64, the inputs are float32.
        expect(step[name.replace('eval/', 'train/')]).toBeCloseTo(value, 5);
      }
    }
  });

  it('holds to the reference that it is given', async () => {
    const other = abcPolicy().engine.learner;
    for await (const _ of dpo({ learner: other, examples: pairs, steps: 3, batchSize: 4, seed: 1 })) void _;
    const { first } = await run({ reference: other });
    expect(first['eval/chosen_reward']).not.toBe(0);
  });

  it('compares means of tokens with ipo, and where it is told to', async () => {
    const [sums, means, ipo, ipoSums] = await Promise.all([
      run({ steps: 2 }),
      run({ steps: 2, lengthNormalized: true }),
      run({ steps: 2, loss: { ipo: true } }),
      run({ steps: 2, loss: { ipo: true }, lengthNormalized: false }),
    ]);
    expect(sums.last['eval/loss']).not.toBe(means.last['eval/loss']);
    expect(ipo.last['eval/loss']).not.toBe(ipoSums.last['eval/loss']);
    expect(ipo.first['eval/loss']).toBeCloseTo(25, 5);
  });
});
