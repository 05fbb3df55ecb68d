import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chainEpisode, recorder } from '../../tests/support/trajectories.ts';
import { type Episode, episodeReward } from '../episode/episode.ts';
import { curate } from './curation.ts';
import {
  type CurationValues,
  curationFromOptions,
  curationOptions,
  groupFilterFromOptions,
} from './curation-options.ts';

const schema = z.object(
  Object.fromEntries(Object.entries(curationOptions).map(([name, option]) => [name, option.schema])),
);
const values = (given: Record<string, unknown>) => schema.parse(given) as CurationValues;
const from = (given: Record<string, unknown>, answerLength?: number) =>
  curationFromOptions(values(given), { answerLength });
const reward = (given: Record<string, unknown>, episode: Episode, answerLength?: number) =>
  curate([{ episodes: [episode] }], from(given, answerLength), 1).groups[0]!.episodes.map(episodeReward)[0];

const ten = chainEpisode({ turns: [{ tokens: 10, reward: 1 }] });

/** One turn with typed facts about it. */
function turnWith(facts: Partial<Episode['steps'][number]>, tokens = [1, 2, 3]): Episode {
  const record = recorder();
  const sampled = {
    tokens: Int32Array.from(tokens),
    logprobs: new Float32Array(tokens.length).fill(-1),
    versions: new Int32Array(tokens.length),
  };
  const segment = record.sampled(record.feed(-1, 'prompt', Int32Array.of(1)), sampled);
  record.step({ segment, reward: 1, finishReason: 'stop', ...facts });
  return record.finish({ kind: 'done' });
}

describe('curationFromOptions', () => {
  it('does nothing by default', () => {
    expect(from({})).toEqual({ penalties: [], filters: [] });
  });

  it('punishes length against the longest answer, or against a length of its own', () => {
    const buffer = { 'reward.overlong_buffer_len': 4 };
    expect(reward(buffer, ten, 12)).toBe(0.5);
    expect(reward({ ...buffer, 'reward.overlong_penalty_factor': 2 }, ten, 12)).toBe(0);
    expect(reward({ ...buffer, 'reward.overlong_max_len': 11 }, ten, 12)).toBe(0.25);
    expect(() => from(buffer)).toThrow(/set reward\.overlong_max_len, or rollout\.max_new_tokens/);
    expect(() => from(buffer, 3)).toThrow(/buffer must be in \(0, 3\].*got 4/);
  });

  it('scales or replaces what did not stop properly', () => {
    const cut = turnWith({ finishReason: 'length' });
    expect(reward({ 'reward.stop_properly_penalty_coef': 0.25 }, cut)).toBe(0.25);
    expect(reward({ 'reward.stop_properly_penalty_coef': -2 }, cut)).toBe(-2);
    expect(schema.safeParse({ 'reward.stop_properly_penalty_coef': 1.5 }).success).toBe(false);
  });

  it('splits rewards', () => {
    const two = chainEpisode({ turns: [{ tokens: 1 }, { tokens: 1, reward: 1 }] });
    expect(reward({ 'reward.split': 'broadcast' }, two)).toBe(2);
    const split = from({ 'reward.split': 'geometric', 'reward.split_factor': 0.5 });
    const [first, second] = curate([{ episodes: [two] }], split, 1).groups[0]!.episodes[0]!.steps;
    expect(first!.reward / second!.reward).toBeCloseTo(0.5, 12);
  });

  it.each([
    ['truncated', { finishReason: 'length' as const }, {}],
    ['void_turns', { isVoid: true }, {}],
    ['failed_tools', { toolFailed: true }, { 'algo.filter.failed_tools_share': 1 }],
  ])('finds %s by what the step says, not by a metric of that name', (name, facts, more) => {
    for (const effect of ['mask', 'remove']) {
      const { filters } = from({ [`algo.filter.${name}`]: effect, ...more });
      expect(filters).toMatchObject([{ name, effect }]);
      expect(filters![0]!.finds(turnWith(facts))).toBe(true);
      expect(filters![0]!.finds(turnWith({ metrics: { [name]: 1 } }))).toBe(false);
    }
  });

  it('finds repeated text', () => {
    const { filters } = from({ 'algo.filter.repeated_text': 'mask', 'algo.filter.repeated_text_ngram': 2 });
    expect(filters![0]!.finds(turnWith({}, [4, 5, 4, 5, 4, 5, 4, 5]))).toBe(true);
    expect(filters![0]!.finds(turnWith({}, [1, 2, 3, 4, 5, 6, 7, 8]))).toBe(false);
  });

  it.each([
    [
      { 'reward.overlong_penalty_factor': 2 },
      /overlong_penalty_factor has no effect without reward\.overlong_buffer_len/,
    ],
    [
      { 'reward.split': 'last', 'reward.split_factor': 0.5 },
      /split_factor has no effect without reward\.split geometric/,
    ],
    [{ 'algo.filter.failed_tools_share': 0.5 }, /no effect without algo\.filter\.failed_tools mask or remove/],
    [
      { 'algo.filter.repeated_text_share': 0.5, 'algo.filter.repeated_text_ngram': 3 },
      /repeated_text_share and algo\.filter\.repeated_text_ngram have no effect/,
    ],
  ])('refuses what has no effect: %j', (given, message) => {
    expect(() => from(given)).toThrow(message);
  });
});

describe('groupFilterFromOptions', () => {
  const filter = (given: Record<string, unknown>, samples = 4) => groupFilterFromOptions(values(given), samples);
  const on = { 'algo.dynamic_filtering_enable': true };

  it('takes every group unless it is enabled', () => {
    expect(filter({})).toBeUndefined();
    expect(() => filter({ 'algo.dynamic_filtering_range': [0, 1] })).toThrow(
      /no effect without algo\.dynamic_filtering_enable/,
    );
  });

  it('keeps groups with a mean score strictly inside the range', () => {
    const inside = filter(on)!;
    expect(
      [
        [0, 0],
        [0, 1],
        [1, 1],
      ].map(inside),
    ).toEqual([false, true, false]);
    const narrow = filter({ ...on, 'algo.dynamic_filtering_range': [0.5, 0.75] })!;
    expect(
      [
        [0, 1],
        [0.6, 0.6],
      ].map(narrow),
    ).toEqual([false, true]);
  });

  it('keeps groups whose scores differ enough', () => {
    const differ = filter({ ...on, 'algo.dynamic_filtering_min_std': 0.1 })!;
    expect(
      [
        [0.5, 0.5],
        [0.5, 0.55],
        [0, 1],
      ].map(differ),
    ).toEqual([false, false, true]);
  });

  it.each([
    [{ ...on, 'algo.dynamic_filtering_range': [1, 0] }, 4, /ordered, low < high, got 1 and 0/],
    [{ ...on, 'algo.dynamic_filtering_range': [0, 1], 'algo.dynamic_filtering_min_std': 0 }, 4, /not both/],
    [on, 1, /n_samples_per_prompt ≥ 2, got 1/],
  ])('refuses %j with %i samples', (given, samples, message) => {
    expect(() => filter(given, samples)).toThrow(message);
  });
});
