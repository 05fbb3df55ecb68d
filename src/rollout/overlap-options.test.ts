import { describe, expect, it } from 'vitest';
import type { Learner } from '../engines/contracts.ts';
import { checkChoice, checkEngine } from './choose.ts';
import { type OverlapValues, overlapFromOptions, overlapOptions } from './overlap-options.ts';

const defaults = Object.fromEntries(
  Object.entries(overlapOptions).map(([name, { schema }]) => [name, schema.parse(undefined)]),
) as OverlapValues;
const read = (values: Partial<OverlapValues>) => overlapFromOptions({ ...defaults, ...values }, 4);
const ASYNC = { 'train.async_enable': true } as const;
const PARTIAL = { ...ASYNC, 'train.partial_rollout_enable': true } as const;

describe('overlapFromOptions', () => {
  it('takes turns in one thread without options', () => {
    expect(read({})).toEqual({ overlap: undefined, colocated: true, sleep: { sampler: true, learner: false } });
    expect(read({ 'train.colocate_all': false }).colocated).toBe(false);
    const asked = { 'vllm.enable_sleep': false, 'ds.enable_sleep': true };
    expect(read(asked).sleep).toEqual({ sampler: false, learner: true });
  });

  it('overlaps in separate threads', () => {
    expect(read(ASYNC)).toMatchObject({ overlap: { partial: undefined }, colocated: false });
    expect(read(PARTIAL).overlap).toMatchObject({ partial: 'keep' });
    const all = {
      ...PARTIAL,
      'train.async_queue_size': 2,
      'rollout.max_staleness': 3,
      'rollout.stale_groups': 'weigh',
      'rollout.partial_cache': 'recompute',
      'rollout.vllm_generate_batch_size': 6,
    } as const;
    const overlap = { queueSize: 2, maxStaleness: 3, whenStale: 'weigh', partial: 'recompute', generateGroups: 6 };
    expect(read(all).overlap).toEqual(overlap);
  });

  it.each<[Partial<OverlapValues>, RegExp]>([
    [{ 'train.async_queue_size': 2 }, /train\.async_queue_size has no effect: .* set train\.async_enable/],
    [{ 'train.partial_rollout_enable': true }, /train\.partial_rollout_enable has no effect: .*train\.async_enable/],
    [{ 'rollout.max_staleness': 0 }, /rollout\.max_staleness has no effect/],
    [{ 'rollout.vllm_generate_batch_size': 8 }, /rollout\.vllm_generate_batch_size has no effect/],
    [
      { ...ASYNC, 'rollout.partial_cache': 'keep' },
      /partial_cache has no effect: .* set train\.partial_rollout_enable/,
    ],
    [{ ...ASYNC, 'train.colocate_all': true }, /colocate_all has no place .* one thread with one set of weights/],
    [{ ...ASYNC, 'vllm.enable_sleep': true }, /vllm\.enable_sleep has no place .* neither rests/],
    [{ ...ASYNC, 'ds.enable_sleep': true }, /ds\.enable_sleep has no place .* neither rests/],
    [{ ...ASYNC, 'train.async_queue_size': 3, 'rollout.max_staleness': 1 }, /a queue of 12 groups .* is never full/],
  ])('refuses %j', (values, message) => {
    expect(() => read(values)).toThrow(message);
  });
});

describe('checkChoice', () => {
  const run = { groups: 4, deterministic: false, oversampling: false, evaluatesAverage: false };

  it.each([
    [{ deterministic: true }, /full_determinism_enable cannot be kept .* set rollout\.max_staleness 0/],
    [{ oversampling: true }, /rollout\.oversampling samples in rounds/],
    [{ evaluatesAverage: true }, /eval\.ema_enable lends the sampler other weights/],
  ])('refuses an overlap with %j', (surroundings, message) => {
    expect(() => checkChoice({ overlap: {} }, { ...run, ...surroundings })).toThrow(message);
    expect(() => checkChoice({}, { ...run, ...surroundings })).not.toThrow();
  });

  it('keeps determinism where no staleness is allowed, and lets nothing sleep in an overlap', () => {
    expect(() => checkChoice({ overlap: { maxStaleness: 0 } }, { ...run, deterministic: true })).not.toThrow();
    expect(() => checkChoice({ overlap: {}, sleep: { sampler: true } }, run)).toThrow(/nothing sleeps/);
    expect(() => checkChoice({ overlap: { queueSize: 9, maxStaleness: 1 } }, run)).toThrow(/never full/);
  });
});

it('checkEngine refuses what the engine cannot do', () => {
  const learner = {} as Learner;
  expect(() => checkEngine({ overlap: {} }, { colocated: true, learner })).toThrow(/share one set of weights/);
  expect(() => checkEngine({ overlap: { maxStaleness: 0 } }, { colocated: true, learner })).not.toThrow();
  expect(() => checkEngine({ sleep: { learner: true } }, { learner })).toThrow(/holds no optimizer state/);
  expect(() =>
    checkEngine({ sleep: { learner: true } }, { learner: { ...learner, offload: async () => 0 } }),
  ).not.toThrow();
});
