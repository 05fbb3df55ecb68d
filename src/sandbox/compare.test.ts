import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sameJson, sameOutput } from './compare.ts';

describe('sameJson', () => {
  it.each<[unknown, unknown, boolean]>([
    [1, 1, true],
    [1, 1.0000000001, true],
    [1, 1.00001, false],
    [0.1 + 0.2, 0.3, true],
    [0, 1e-13, true],
    [0, 1e-9, false],
    [1e15, 1e15 + 1, false],
    [1, true, false],
    [0, null, false],
    ['1', 1, false],
    [[], {}, false],
    [[1, [2, 3]], [1, [2, 3]], true],
    [[1, 2], [1, 2, 3], false],
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [{ a: 1, b: 2 }, { a: 1 }, false],
    [{ toString: 1 }, { constructor: 1 }, false],
  ])('%j and %j: %s', (actual, expected, same) => expect(sameJson(actual, expected)).toBe(same));

  it('is true of a value and its copy, and no deeper than what is expected', () => {
    fc.assert(fc.property(fc.json(), text => sameJson(JSON.parse(text), JSON.parse(text))));
    const deep = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000));
    expect(sameJson(deep, [[1]])).toBe(false);
  });
});

describe('sameOutput', () => {
  it.each([
    ['a\nb\n', 'a\nb', true],
    ['a  \r\nb\n\n\n', 'a\nb', true],
    ['a\n\nb', 'a\nb', false],
    [' a', 'a', false],
    ['a b', 'a  b', false],
    ['', '\n', true],
    ['A', 'a', false],
  ])('%j and %j: %s', (actual, expected, same) => expect(sameOutput(actual, expected)).toBe(same));
});
