import fc from 'fast-check';
import { expect, it } from 'vitest';
import { growTree } from './tree.ts';

const grow = (sequences: readonly (readonly number[])[], share = true) =>
  growTree(
    sequences.map(tokens => Int32Array.from(tokens)),
    share,
  );

it('holds what sequences have in common once', () => {
  const { tokens, depth, parent, end, paths } = grow([
    [1, 2, 3, 4],
    [1, 2, 3],
    [1, 2, 5],
    [1, 2, 3, 4],
  ]);
  expect([...tokens]).toEqual([1, 2, 3, 4, 5]);
  expect([...depth]).toEqual([0, 1, 2, 3, 2]);
  expect([...parent]).toEqual([-1, 0, 1, 2, 1]);
  expect([...end]).toEqual([5, 5, 4, 4, 5]);
  expect(paths.map(path => [...path])).toEqual([
    [0, 1, 2, 3],
    [0, 1, 2],
    [0, 1, 4],
    [0, 1, 2, 3],
  ]);
});

it('computes a short common beginning twice', () => {
  const long = (last: number) => [1, ...Array.from({ length: 7 }, () => last)];
  expect(grow([long(2), long(3)]).tokens).toHaveLength(16);
  expect(
    grow([
      [1, ...long(2)],
      [1, ...long(3)],
    ]).tokens,
  ).toHaveLength(18);
  expect(
    grow([
      [1, 1, ...long(2)],
      [1, 1, ...long(3)],
    ]).tokens,
  ).toHaveLength(17);
});

it('says of every sequence where its tokens are, shared or not', () => {
  const sequences = fc.array(fc.array(fc.nat(2), { minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(sequences, fc.boolean(), (all, share) => {
      const { tokens, depth, parent, end, paths } = grow(all, share);
      for (const [s, path] of paths.entries()) {
        expect([...path].map(n => tokens[n])).toEqual(all[s]);
        expect([...path].map(n => depth[n])).toEqual([...path.keys()]);
        expect([...path].map(n => parent[n])).toEqual([-1, ...path].slice(0, -1));
      }
      // Depth-first: the tokens below one are those up to its end.
      for (const n of tokens.keys()) {
        const below = [...tokens.keys()].filter(m => m > n && m < end[n]!);
        expect(below.every(m => depth[m]! > depth[n]!)).toBe(true);
        expect(parent[end[n]!] ?? -1).toBeLessThan(n);
      }
      if (!share) expect(tokens).toHaveLength(all.flat().length);
    }),
  );
});
