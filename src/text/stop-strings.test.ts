import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutAtStop, StopStrings, settled } from './stop-strings.ts';
import { type TokenBytes, tokenBytes } from './token-bytes.ts';

const goldens = fileURLToPath(new URL('../../tests/goldens/', import.meta.url));
const json = async (path: string) => JSON.parse(await readFile(join(goldens, path), 'utf8'));

/** Number of tokens after which a string is complete, and the string. */
function end(strings: readonly string[], tokens: readonly number[], bytes: TokenBytes): [number, string] | null {
  const stops = new StopStrings(strings, bytes);
  for (const [i, token] of tokens.entries()) {
    const found = stops.push(token);
    if (found !== undefined) return [i + 1, found];
  }
  return null;
}

it('stops where the criterion of Transformers does', async () => {
  const cases: { tokenizer: string; tokens: number[]; ends: [string[], number | null][] }[] = (
    await json('sampling.json')
  ).stop;
  let stopped = 0;
  for (const { tokenizer, tokens, ends } of cases) {
    const bytes = tokenBytes(await json(`text/${tokenizer}/tokenizer.json`));
    for (const [strings, expected] of ends) {
      expect([tokenizer, strings, end(strings, tokens, bytes)?.[0] ?? null]).toEqual([tokenizer, strings, expected]);
      stopped += expected === null ? 0 : 1;
    }
  }
  expect(stopped).toBeGreaterThan(40);
});

/** Text cut anywhere between its bytes; the tokens are the pieces. */
function pieces(text: string, cuts: readonly number[]): { tokens: number[]; bytes: TokenBytes } {
  const all = Buffer.from(text);
  const places = [...new Set([0, ...cuts.map(cut => cut % (all.length + 1)), all.length])].sort((a, b) => a - b);
  const table = places.slice(1).map((place, i) => all.subarray(places[i], place));
  return { tokens: [...table.keys()], bytes: token => table[token]! };
}

describe('a stop string', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '你', '🙂'), maxLength: 12 });
  const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'é', '你', '🙂'), minLength: 1, maxLength: 3 }), {
    minLength: 1,
    maxLength: 3,
  });

  it('is found in the first token after which the text has it, however the text is cut into tokens', () => {
    fc.assert(
      fc.property(text, stops, fc.array(fc.nat(60)), (said, strings, cuts) => {
        const { tokens, bytes } = pieces(said, cuts);
        const prefix = (count: number) => Buffer.concat(tokens.slice(0, count).map(bytes)).toString();
        const expected = tokens.findIndex((_, i) => strings.some(stop => prefix(i + 1).includes(stop)));
        const found = end(strings, tokens, bytes);
        expect(found?.[0] ?? 0).toBe(expected + 1);
        if (found) expect(strings).toContain(found[1]);
      }),
      { numRuns: 500 },
    );
  });

  it('is the one that is complete first, and the longest of those', () => {
    const { tokens, bytes } = pieces('say abc', [4]);
    expect(end(['abc', 'b'], tokens, bytes)).toEqual([2, 'b']);
    expect(end(['c', 'abc', 'bc'], tokens, bytes)).toEqual([2, 'abc']);
  });
});

it('cuts text before or behind the string', () => {
  expect(cutAtStop('one;two;', ';', false)).toBe('one');
  expect(cutAtStop('one;two;', ';', true)).toBe('one;');
  expect(cutAtStop('one', undefined, false)).toBe('one');
  // A string that lies in special tokens is not in the text without them.
  expect(cutAtStop('one', '<end>', false)).toBe('one');
});

it('holds back what may become a stop string', () => {
  const stops = ['</tool>', '\n\n'];
  expect(settled('a < b', stops)).toBe('a < b');
  expect(settled('a </to', stops)).toBe('a ');
  expect(settled('a </to\n', stops)).toBe('a </to');
  expect(settled('a', [])).toBe('a');
});
