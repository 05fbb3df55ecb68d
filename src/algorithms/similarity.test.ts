import { describe, expect, it } from 'vitest';
import { similarity, similarityBound } from './similarity.ts';

describe('similarity', () => {
  it.each([
    ['', '', 1],
    ['abc', '', 0],
    ['abc', 'abc', 1],
    ['abcd', 'bcde', 0.75],
    ['private Thread currentThread;', 'private volatile Thread currentThread;', 58 / 67],
  ])('of %j and %j is %d', (a, b, expected) => {
    expect(similarity(a, b)).toBeCloseTo(expected, 12);
    expect(similarity(a, b)).toBeLessThanOrEqual(similarityBound(a.length, b.length));
  });
});
