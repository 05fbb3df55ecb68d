import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chain, chainEpisode, recorder } from '../../tests/support/trajectories.ts';
import type { Episode } from '../episode/episode.ts';
import {
  anyTurn,
  isTruncated,
  maskEpisodes,
  meanScoreWithin,
  repeatedShare,
  repeatsText,
  scoreStdAbove,
  turnsAtLeast,
} from './filters.ts';
import { overlongPenalty, REWARD_SPLITS, splitReward, stopProperly } from './penalties.ts';

const rewards = (episode: Episode) => episode.steps.map(step => step.reward);
const episode = chainEpisode({
  turns: [
    { tokens: 3, reward: 1, environment: 50 },
    { tokens: 5, reward: 2 },
  ],
});
const cut: Episode = { ...episode, outcome: { kind: 'truncated', reason: 'length' } };
const cutMidway: Episode = {
  ...episode,
  steps: [{ ...episode.steps[0]!, finishReason: 'length' }, episode.steps[1]!],
};

describe('group filters', () => {
  it('by mean score in an open range', () => {
    const filter = meanScoreWithin(0, 1);
    expect(
      [
        [0, 0],
        [1, 1],
        [0, 1],
        [0.5, 0.5],
      ].map(filter),
    ).toEqual([false, false, true, true]);
    expect(() => meanScoreWithin(1, 1)).toThrow('low < high, got 1 and 1');
  });

  it('by variance, which a group of equal scores does not have', () => {
    const filter = scoreStdAbove(0);
    expect([[0.5, 0.5], [0.1, 0.1, 0.1], [0, 1], [1], []].map(filter)).toEqual([false, false, true, false, false]);
    expect(scoreStdAbove(0.8)([0, 1])).toBe(false);
    expect(() => scoreStdAbove(-1)).toThrow('≥ 0, got -1');
  });
});

describe('trajectory filters', () => {
  it('find answers cut off in any turn, and not episodes that ran out of turns', () => {
    expect([episode, cut, cutMidway].map(isTruncated)).toEqual([false, true, true]);
    expect(isTruncated({ ...episode, outcome: { kind: 'truncated', reason: 'turns' } })).toBe(false);
  });

  it('ask the detector about every turn', () => {
    expect(anyTurn(step => step.reward === 2)(episode)).toBe(true);
    expect(anyTurn(step => step.reward === 3)(episode)).toBe(false);
    expect(turnsAtLeast(0.5, step => step.reward === 2)(episode)).toBe(true);
    expect(turnsAtLeast(0.6, step => step.reward === 2)(episode)).toBe(false);
    expect(turnsAtLeast(0.5, () => true)({ ...episode, steps: [] })).toBe(false);
    expect(() => turnsAtLeast(0, () => true)).toThrow('(0, 1], got 0');
  });

  it('find answers that repeat themselves', () => {
    expect(repeatedShare(Int32Array.of(1, 2, 1, 2, 1, 2), 2)).toBeCloseTo(3 / 5, 12);
    expect(repeatedShare(Int32Array.of(1, 2, 3, 4, 5, 6), 2)).toBe(0);
    expect(repeatedShare(Int32Array.of(1, 1, 1), 2)).toBe(0);
    const record = recorder();
    const prompt = record.feed(-1, 'prompt', Int32Array.of(1, 1, 1, 1, 1, 1));
    expect(repeatsText({ n: 2, share: 0.5 })(record.finish({ kind: 'done' }))).toBe(false);
    const tokens = new Int32Array(8).fill(3);
    record.sampled(prompt, { tokens, logprobs: new Float32Array(8), versions: new Int32Array(8) });
    expect(repeatsText({ n: 2, share: 0.5 })(record.finish({ kind: 'done' }))).toBe(true);
    expect(() => repeatsText({ n: 0, share: 0.5 })).toThrow('whole n ≥ 1, got 0');
  });

  it('mask whole episodes', () => {
    const [a, b] = [chain({ id: 'a', turns: [{ tokens: 2 }] }), chain({ id: 'b', turns: [{ tokens: 1 }] })];
    expect(maskEpisodes([a, b], new Set(['b']))).toEqual([Uint8Array.of(1, 1), Uint8Array.of(0)]);
  });
});

describe('penalties', () => {
  it('grow over the overlong buffer, counting tokens of the policy only', () => {
    const penalised = (maxTokens: number, buffer: number) =>
      rewards(overlongPenalty({ maxTokens, buffer, factor: 0.5 })(episode));
    // 8 policy tokens; with 50 of the environment they would be 58.
    expect(penalised(20, 4)).toEqual([1, 2]);
    expect(penalised(10, 4)).toEqual([1, 2 - 0.25]);
    expect(penalised(6, 4)).toEqual([1, 1.5]);
    expect(() => overlongPenalty({ maxTokens: 4, buffer: 5 })).toThrow('in (0, 4], the longest answer, got 5');
  });

  it('scale or replace the rewards of answers that did not stop, in multi-turn episodes too', () => {
    expect(rewards(stopProperly(0.5)(cut))).toEqual([0.5, 1]);
    expect(rewards(stopProperly(-0.5)(cutMidway))).toEqual([0, -0.5]);
    expect(stopProperly(0.5)(episode)).toBe(episode);
    expect(() => stopProperly(1.5)).toThrow('in [0, 1], or negative, got 1.5');
  });

  it('scale rewards of tokens with their step, and leave them where they only add to it', () => {
    const perToken = { ...cut, steps: cut.steps.map(step => ({ ...step, tokenRewards: [step.reward, 0] })) };
    expect(stopProperly(0.5)(perToken).steps).toMatchObject([{ tokenRewards: [0.5, 0] }, { tokenRewards: [1, 0] }]);
    expect(overlongPenalty({ maxTokens: 6, buffer: 4 })(perToken).steps).toMatchObject(
      perToken.steps.map(({ tokenRewards }) => ({ tokenRewards })),
    );
    for (const replaced of [stopProperly(-1)(perToken), splitReward('uniform')(perToken)]) {
      for (const step of replaced.steps) expect(step).not.toHaveProperty('tokenRewards');
    }
  });

  it('keep the score', () => {
    expect(stopProperly(-0.5)(cut).score).toBe(3);
  });
});

describe('splitReward', () => {
  it.each([
    ['last', [0, 3]],
    ['broadcast', [3, 3]],
    ['uniform', [1.5, 1.5]],
    ['geometric', [(3 * 0.1 * 0.9) / 0.19, (3 * 0.1) / 0.19]],
  ] as const)('%s', (split, expected) => {
    for (const [k, value] of rewards(splitReward(split)(episode)).entries())
      expect(value).toBeCloseTo(expected[k]!, 12);
  });

  it('keeps the return, but for broadcast, and takes an episode without steps', () => {
    for (const split of REWARD_SPLITS) {
      const total = rewards(splitReward(split, 0.5)(episode)).reduce((a, b) => a + b, 0);
      expect(total).toBeCloseTo(split === 'broadcast' ? 6 : 3, 12);
      expect(splitReward(split)({ ...episode, steps: [] }).steps).toEqual([]);
    }
    expect(() => splitReward('geometric', 1)).toThrow('(0, 1), got 1');
  });
});

it('counts repeated n-grams as a set of them would', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -3, max: 3 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      (ids, n) => {
        const tokens = Int32Array.from(ids);
        const total = tokens.length - n + 1;
        const seen = new Set(Array.from({ length: Math.max(0, total) }, (_, t) => tokens.subarray(t, t + n).join(' ')));
        expect(repeatedShare(tokens, n)).toBe(tokens.length < 2 * n ? 0 : (total - seen.size) / total);
      },
    ),
  );
});
