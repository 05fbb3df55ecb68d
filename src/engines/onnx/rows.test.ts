import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cut, cutRows, type Rows, rowFeeds, rowMask } from './rows.ts';
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

/** The places of each row's keys that a token attends to. */
function seen({ Q, T }: Rows, mask: Float32Array, token: number): number[] {
  const row = Math.floor(token / Q);
  const line = mask.subarray(token * T, (token + 1) * T);
  return [...line.keys()].filter(t => line[t] === 0).map(t => row * T + t);
}

describe('rows', () => {
  const cuts = fc.tuple(forest, fc.integer({ min: 1, max: 9 })).map(([tree, rows]) => cut(tree, rows));

  it('let every token attend to the tokens above it, in order, as far as the window', () => {
    fc.assert(
      fc.property(cuts, fc.option(fc.integer({ min: 1, max: 6 })), (rows, window) => {
        const { tree } = rows;
        const { keys } = rowFeeds(rows);
        const mask = rowMask(rows, window);
        for (const token of tree.tokens.keys()) {
          const found = seen(rows, mask, token).map(place => Number(keys[place]));
          expect(found).toEqual(above(tree, token).slice(window === null ? 0 : -window));
        }
      }),
    );
  });

  it('name every place that anyone attends to, once, from the side of the token', () => {
    fc.assert(
      fc.property(cuts, rows => {
        const { tree, B, Q, T, E, R } = rows;
        const { keys, own, extra, line, repeated } = rowFeeds(rows);
        expect([keys.length, own.length, line.length, extra.length]).toEqual([B * T, B * Q, B * Q, E * R]);
        const mask = rowMask(rows, null);
        const used = new Set([...tree.tokens.keys()].flatMap(token => seen(rows, mask, token)));
        const named: number[] = [];
        for (const token of tree.tokens.keys()) {
          const lines =
            repeated[token] === 1 ? [...extra.slice(Number(line[token]) * R, Number(line[token]) * R + R)] : [];
          const places = [own[token]!, ...lines].map(Number).filter(place => used.has(place));
          for (const place of places) expect(Number(keys[place])).toBe(token);
          named.push(...places);
        }
        expect(named.toSorted((a, b) => a - b)).toEqual([...used].sort((a, b) => a - b));
      }),
    );
  });
});

describe('cutRows', () => {
  const sizes = { heads: 4, kvHeads: 2, headDim: 32, hiddenSize: 128, intermediateSize: 352 };
  const tokens = (length: number, token: number) => new Int32Array(length).fill(token);

  it('gives sequences of one length a row each where they are short', () => {
    const tree = growTree(
      Array.from({ length: 32 }, (_, n) => tokens(64, n)),
      true,
    );
    expect(cutRows(tree, sizes)).toMatchObject({ B: 32, Q: 64, T: 64, E: 1, R: 1 });
  });

  it('cuts a long prompt, and keeps its keys for the answers', () => {
    const group = Array.from({ length: 8 }, (_, n) => Int32Array.from([...tokens(448, 9), ...tokens(64, n)]));
    const { B, Q, T, tree } = cutRows(growTree(group, true), sizes);
    expect(tree.tokens).toHaveLength(448 + 8 * 64);
    expect(B * Q).toBeLessThan(1000);
    // At least three times fewer scores than 8 sequences of 512.
    expect(B * Q * T).toBeLessThan((8 * 512 * 512) / 3);
  });
});
