import { describe, expect, it } from 'vitest';
import { pairwiseLoss } from '../algorithms/losses/pairwise.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { tableCritic } from '../testing/table-critic.ts';
import { preferencePair } from './preferences.ts';
import { evaluateRewardModel, trainRewardModel } from './reward-model.ts';

const renderer = byteRenderer();
/** The table critic sees the last token alone, which ends every answer: what it can tell apart are answers' ends. */
const pairOf = (chosen: string, rejected: string, margin = 0) => {
  const pair = preferencePair({ prompt: 'q', chosen, rejected, margin }, renderer);
  const open = ({ tokens, predict }: typeof pair.chosen) => ({
    tokens: tokens.subarray(0, -1),
    predict: predict.subarray(0, -1),
  });
  return { chosen: open(pair.chosen), rejected: open(pair.rejected), margin };
};
const pairs = [pairOf('xa', 'xb'), pairOf('ya', 'xc'), pairOf('za', 'b'), pairOf('a', 'yc')];

describe('a reward model', () => {
  it('learns to give the chosen answers more, evaluated before and after', async () => {
    const critic = tableCritic(260);
    const options = { critic, examples: pairs, heldOut: pairs, steps: 8, batchSize: 4, seed: 1 };
    const steps: Readonly<Record<string, number>>[] = [];
    for await (const { metrics } of trainRewardModel({ ...options, optimizer: { learningRate: 1 } }))
      steps.push(metrics);
    expect(steps[0]).toMatchObject({ 'eval/loss': Math.log(2), 'eval/acc': 0, 'eval/reward_mean': 0 });
    // All rewards are 0 at first: no difference, which is no reward model that is right.
    expect(steps[1]).toMatchObject({ 'train/loss': expect.closeTo(Math.log(2), 6), 'train/acc': 0 });
    expect(steps.at(-1)).toMatchObject({ 'eval/acc': 1, 'train/acc': 1 });
    expect(steps.at(-1)!['eval/loss']).toBeLessThan(0.3);
    expect(steps.at(-1)!['train/tokens']).toBe(
      pairs.reduce((n, p) => n + p.chosen.tokens.length + p.rejected.tokens.length, 0),
    );
  });

  it('is evaluated with the loss it is trained on, however pairs are batched', async () => {
    const critic = tableCritic(260);
    const margins = pairs.map((pair, i) => ({ ...pair, margin: i / 2 }));
    for await (const _ of trainRewardModel({ critic, examples: margins, steps: 1, batchSize: 4, seed: 1 })) void _;
    const whole = await evaluateRewardModel(critic, margins, { batchSize: 4 });
    const parts = await evaluateRewardModel(critic, margins, { batchSize: 3 });
    for (const [name, value] of Object.entries(whole)) expect(parts[name as keyof typeof whole]).toBeCloseTo(value, 12);
    const learn = trainRewardModel({ critic, examples: margins, steps: 1, batchSize: 4, seed: 1 });
    const { value } = await learn.next();
    expect(value!.metrics['train/loss']).toBeCloseTo(whole.loss, 6);
    const plain = await evaluateRewardModel(critic, margins, { batchSize: 4, type: 'logexp' });
    expect(plain.loss).toBeLessThan(whole.loss);
  });

  it('tells mean and deviation of all rewards, which is never 0', async () => {
    const critic = tableCritic(260);
    expect(await evaluateRewardModel(critic, pairs, { batchSize: 2 })).toMatchObject({
      reward_mean: 0,
      reward_std: 1e-8,
    });
  });

  it('stops with the last good weights where a loss is not finite', async () => {
    const critic = tableCritic(260);
    const broken = { ...critic, forwardBackward: async () => ({ loss: Number.NaN }) };
    const run = trainRewardModel({ critic: broken, examples: pairs, steps: 2, batchSize: 2, seed: 1 });
    await expect(run.next()).rejects.toThrow(/step 1: loss is NaN/);
    expect(pairwiseLoss().values).toBe(true);
  });
});
