import fc from 'fast-check';
import { expect, it } from 'vitest';
import { editDistance, nearest } from './nearest.ts';

it('counts edits', () => {
  expect(editDistance('kitten', 'sitting')).toBe(3);
  expect(editDistance('', 'abc')).toBe(3);
});

it('is a metric', () => {
  const word = fc.string({ maxLength: 8 });
  fc.assert(
    fc.property(word, word, word, (a, b, c) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a));
      expect(editDistance(a, b) === 0).toBe(a === b);
      expect(editDistance(a, c)).toBeLessThanOrEqual(editDistance(a, b) + editDistance(b, c));
    }),
  );
});

it('finds what was meant, by the last words too, and nothing when nothing is close', () => {
  const names = ['train.seed', 'actor.adam.lr', 'critic.adam.lr', 'train.batch_size', 'rollout.batch_size'];
  expect(nearest('train.sed', names)).toBe('train.seed');
  expect(nearest('lr', names)).toBe('actor.adam.lr');
  expect(nearest('critic.lr', names)).toBeUndefined();
  expect(nearest('rollout.batchsize', names)).toBe('rollout.batch_size');
  expect(nearest('train.batch', names)).toBe('train.batch_size');
  expect(nearest('train.momentum', names)).toBeUndefined();
  expect(nearest('quantum', names)).toBeUndefined();
});
