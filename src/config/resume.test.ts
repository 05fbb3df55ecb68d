import { expect, it } from 'vitest';
import type { Options } from '../options/option.ts';
import { compareOptions, lastingOptions } from './resume.ts';
import { rlOptions } from './rl.ts';
import { defaultOf } from './schema.ts';

const before = {
  'actor.model_name_or_path': 'a',
  'actor.adam.lr': 1e-3,
  'ds.lora.rank': 0,
  'train.enable_ema': false,
  'ckpt.save_steps': 2,
  'eval.dataset': ['x', 'y'],
};

it('the same options are the same', () => {
  expect(compareOptions(before, { ...before, 'eval.dataset': ['x', 'y'] })).toEqual({ refused: [], changed: [] });
});

it('what the state fits only if it is the same is refused, and the rest is told or free', () => {
  const now = {
    ...before,
    'actor.model_name_or_path': 'b',
    'actor.adam.lr': 2e-3,
    'ds.lora.rank': 4,
    'train.enable_ema': true,
    'train.max_steps': 9,
    'ckpt.save_steps': 5,
    'run.dir': 'elsewhere',
  };
  const { refused, changed } = compareOptions(before, now);
  expect(refused).toEqual([
    'actor.model_name_or_path is "b", and the checkpoint was made with "a": the weights are those of that model; set it back',
    expect.stringMatching(/^ds\.lora\.rank is 4, and .* 0: .*adapter/),
    expect.stringMatching(/^train\.enable_ema is true/),
  ]);
  expect(changed).toEqual([
    'actor.adam.lr was 0.001 when the checkpoint was written and is 0.002 from here on',
    'train.max_steps was not set when the checkpoint was written and is 9 from here on',
  ]);
});

it('keeps no option of the places, of logging and of checkpoints', () => {
  const values = Object.fromEntries(
    Object.entries(rlOptions as Options).map(([name, option]) => [name, defaultOf(option).value ?? 'given']),
  );
  const kept = Object.keys(lastingOptions(values));
  expect(kept.filter(name => /^(run|ckpt|logger|engine)\./.test(name))).toEqual([]);
  expect(kept).toContain('actor.model_name_or_path');
  expect(kept).toContain('algo.advantage.estimator');
});
