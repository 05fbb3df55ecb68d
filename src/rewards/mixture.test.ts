import { describe, expect, it } from 'vitest';
import { rewardInput } from '../../tests/support/reward-input.ts';
import type { RewardFunction } from './contracts.ts';
import { mixedReward, partName } from './mixture.ts';

const length: RewardFunction = batch =>
  batch.map(({ text }) => ({ reward: text.length, score: text.length / 10, metrics: { short: 1 } }));

describe('mixedReward', () => {
  it('adds what the parts give, each by its weight, and shows every part', async () => {
    const reward = mixedReward({
      length: { reward: length, weight: 2 },
      one: { reward: async batch => batch.map(() => 1), weight: -0.5 },
    });
    expect(await reward([rewardInput('abc'), rewardInput('')])).toEqual([
      { reward: 5.5, score: expect.closeTo(0.1, 12), metrics: { reward_length: 3, length_short: 1, reward_one: 1 } },
      { reward: -0.5, score: -0.5, metrics: { reward_length: 0, length_short: 1, reward_one: 1 } },
    ]);
  });

  it('adds the process rewards of the parts that give any', async () => {
    const parts = {
      a: { reward: () => [{ tokens: [1, 2] }], weight: 2 },
      b: { reward: () => [{ reward: 5, tokens: [0, 4], steps: [3] }], weight: -0.5 },
      c: { reward: () => [1], weight: 1 },
    };
    const [mixed] = await mixedReward(parts)([rewardInput('a')]);
    expect(mixed).toMatchObject({ reward: 6 - 2.5 + 1, score: 4.5, tokens: [2, 2], steps: [-1.5] });
    const uneven = { ...parts, d: { reward: () => [{ tokens: [1] }], weight: 1 } };
    await expect(mixedReward(uneven)([rewardInput('a')])).rejects.toThrow(
      'reward d: 1 rewards of tokens, where reward a gives 2',
    );
  });

  it.each<[string, RewardFunction, RegExp]>([
    ['gives a word for a list', () => [{ tokens: 'abc' as never }], /^reward bad: expected a finite number/],
    ['throws', () => Promise.reject(new Error('no server')), /^no server$/],
    ['gives too few', () => [], /^reward bad: expected 1 scores.* got 0/],
    ['gives no number', () => [Number.NaN], /^reward bad: expected a finite number/],
  ])('fails the answer where a part %s', async (_, bad, message) => {
    const parts = { length: { reward: length, weight: 1 }, bad: { reward: bad, weight: 0 } };
    await expect(mixedReward(parts)([rewardInput('a')])).rejects.toThrow(message);
  });

  it('closes its parts, and refuses weights that are none', async () => {
    let closed = 0;
    const part = Object.assign(length.bind(undefined), { close: async () => void closed++ });
    await mixedReward({ a: { reward: part, weight: 1 }, b: { reward: length, weight: 1 } }).close();
    expect(closed).toBe(1);
    expect(() => mixedReward({ a: { reward: length, weight: Number.NaN } })).toThrow(/weight of reward a .* NaN/);
    expect(() => mixedReward({})).toThrow(/at least one part/);
  });
});

it.each([
  ['math', 'math'],
  ['./rewards/short-answer.ts', 'short_answer'],
  ['http://rm:5000/get_reward,http://b', 'rm_5000'],
])('%s is called %s in metrics', (source, name) => {
  expect(partName(source)).toBe(name);
});
