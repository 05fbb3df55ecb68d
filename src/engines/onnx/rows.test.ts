import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cut, cutRows, packedIndex, type Rows, rowFeeds, rowMasks } from './rows.ts';
import { growTree, type TokenTree } from './tree.ts';

/** Few tokens, so that many sequences begin alike; duplicates and prefixes of one another among them. */
const forest: fc.Arbitrary<TokenTree> = fc
  .tuple(fc.array(fc.array(fc.nat(1), { minLength: 1, maxLength: 14 }), { minLength: 1, maxLength: 8 }), fc.boolean())
  .map(([sequences, share]) =>
    growTree(
      sequences.map(tokens => Int32Array.from(tokens)),
      share,
    ),
  );

function above({ parent }: Pick<TokenTree, 'parent'>, token: number): number[] {
  return parent[token] === -1 ? [token] : [...above({ parent }, parent[token]!), token];
}

/** The places of a row's keys that a token attends to. */
function seen({ Q, classes, rank }: Rows, masks: readonly Float32Array[], token: number): number[] {
  let row = rank[Math.floor(token / Q)]!;
  let first = 0;
  for (const [c, { B, T }] of classes.entries()) {
    if (row < B) {
      const start = (row * Q + (token % Q)) * T;
      const line = masks[c]!.subarray(start, start + T);
      return [...line.keys()].filter(t => line[t] === 0).map(t => first + row * T + t);
    }
    row -= B;
    first += B * T;
  }
  throw new Error(`no row ${row}`);
}

describe('rows', () => {
  const cuts = fc.tuple(forest, fc.integer({ min: 2, max: 9 })).map(([tree, rows]) => cut(tree, rows));

  it('let every token attend to the tokens above it, in order, as far as the window', () => {
    fc.assert(
      fc.property(cuts, fc.option(fc.integer({ min: 1, max: 6 })), (rows, window) => {
        const { tree } = rows;
        const { keys } = rowFeeds(rows);
        const masks = rowMasks(rows, window);
        const index = packedIndex(rows);
        for (const token of tree.tokens.keys()) {
          const found = seen(rows, masks, token).map(place => Number(keys[place]));
          expect(found).toEqual(
            above(tree, token)
              .map(n => index[n])
              .slice(window === null ? 0 : -window),
          );
        }
      }),
    );
  });

  it('name every place that anyone attends to, once, from the side of the token', () => {
    fc.assert(
      fc.property(cuts, rows => {
        const { keys, own, extra, line, repeated } = rowFeeds(rows);
        const { tree, R } = rows;
        const masks = rowMasks(rows, null);
        const used = new Set([...tree.tokens.keys()].flatMap(token => seen(rows, masks, token)));
        const named: number[] = [];
        for (const token of packedIndex(rows)) {
          const at = Number(line[token]) * R;
          const further = repeated[token] === 1 ? [...extra.slice(at, at + R)] : [];
          const all = [own[token]!, ...further].map(Number);
          // What fills a line up is a place, too: the gradient there is read.
          for (const place of all) expect(keys[place]).toBeDefined();
          const places = all.filter(place => used.has(place));
          for (const place of places) expect(Number(keys[place])).toBe(token);
          named.push(...places);
        }
        expect(named.toSorted((a, b) => a - b)).toEqual([...used].sort((a, b) => a - b));
      }),
    );
  });

  it('have a place without a key where a token has fewer further places than another', () => {
    // Rows abcd, efgx and yzwv: both later rows have eight keys, d and x one further place, a, b and c two.
    const tree = growTree([Int32Array.of(0, 1, 2, 3, 4, 5, 6), Int32Array.of(0, 1, 2, 7, 8, 9, 10, 11)], true);
    const rows = cut(tree, 3);
    expect(rows.R).toBe(2);
    const { keys, extra } = rowFeeds(rows);
    const used = new Set([...tree.tokens.keys()].flatMap(token => seen(rows, rowMasks(rows, null), token)));
    const free = [...keys.keys()].filter(place => !used.has(place));
    const filled = [...extra].map(Number).filter(place => !used.has(place));
    expect(filled).toHaveLength(2);
    for (const place of filled) expect(free).toContain(place);
  });
});

describe('cutRows', () => {
  const sizes = { heads: 4, kvHeads: 2, headDim: 32, hiddenSize: 128, intermediateSize: 352 };
  const tokens = (length: number, token: number) => new Int32Array(length).fill(token);

  const scores = ({ Q, classes }: Rows) => classes.reduce((sum, { B, T }) => sum + B * Q * T, 0);

  it.each([16, 64, 512])('computes no more scores than a row for each of 8 sequences of %d', length => {
    const tree = growTree(
      Array.from({ length: 8 }, (_, n) => tokens(length, n)),
      true,
    );
    expect(scores(cutRows(tree, sizes))).toBeLessThanOrEqual(8 * length * length);
  });

  it('cuts a long prompt, and keeps its keys for the answers', () => {
    const group = Array.from({ length: 8 }, (_, n) => Int32Array.from([...tokens(448, 9), ...tokens(64, n)]));
    const rows = cutRows(growTree(group, true), sizes);
    expect(rows.tree.tokens).toHaveLength(448 + 8 * 64);
    expect(rows.rank.length * rows.Q).toBeLessThan(1000);
    // A quarter of the scores of 8 sequences of 512.
    expect(scores(rows)).toBeLessThan((8 * 512 * 512) / 4);
  });
});
