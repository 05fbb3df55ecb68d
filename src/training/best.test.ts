import { expect, it } from 'vitest';
import { betterOf } from './best.ts';

const metrics = (pass1: number) => ({ 'eval/b/pass1': pass1, 'eval/a/reward_mean': -pass1, 'timing/evaluation': 1 });

it('takes the first metric that ends in pass1, and stays with it', () => {
  const first = betterOf(undefined, metrics(0.5), 0, {});
  expect(first).toEqual({ metric: 'eval/b/pass1', value: 0.5, step: 0 });
  expect(betterOf(first, { ...metrics(0.5), 'eval/a/pass1': 1 }, 2, {})).toBe(first);
  expect(betterOf(first, metrics(0.6), 4, {})).toEqual({ metric: 'eval/b/pass1', value: 0.6, step: 4 });
  expect(betterOf(undefined, { 'eval/gpt_loss': 1 }, 0, {})).toBeUndefined();
});

it('maximises or minimises what it is told, which must be there', () => {
  const options = { metric: 'eval/a/reward_mean', mode: 'min' } as const;
  const first = betterOf(undefined, metrics(0.5), 0, options);
  expect(betterOf(first, metrics(0.4), 1, options)).toBe(first);
  expect(betterOf(first, metrics(0.6), 2, options)).toMatchObject({ value: -0.6, step: 2 });
  expect(betterOf(first, { ...metrics(1), 'eval/a/reward_mean': Number.NaN }, 3, options)).toBe(first);
  expect(() => betterOf(undefined, metrics(1), 0, { metric: 'eval/b/pass8' })).toThrow(
    'ckpt.best_metric_key is eval/b/pass8, and an evaluation has eval/a/reward_mean, eval/b/pass1: name one of them',
  );
});
