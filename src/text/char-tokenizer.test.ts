import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CharTokenizerOptions, writeCharTokenizer } from './char-tokenizer.ts';
import { loadTokenizer } from './tokenizer.ts';

const goldens = new URL('../../tests/goldens/text/', import.meta.url);
const options: CharTokenizerOptions = JSON.parse(await readFile(new URL('tokens.json', goldens), 'utf8'))[
  'chars options'
];

describe('writeCharTokenizer', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'chars-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('writes the files that Transformers has been seen to load (tokens.json)', async () => {
    expect(await writeCharTokenizer(directory, options)).toBe(50);
    const names = await readdir(directory);
    expect(names.sort()).toEqual(['chat_template.jinja', 'tokenizer.json', 'tokenizer_config.json']);
    for (const name of names) {
      const expected = await readFile(new URL(`chars/${name}`, goldens), 'utf8');
      expect(await readFile(join(directory, name), 'utf8')).toBe(expected);
    }
  });

  it('gives ids in order, specials first, and round-trips', async () => {
    await writeCharTokenizer(directory, { alphabet: 'ba\u{1f642}', special: ['<e>', '<p>'], eos: '<e>', pad: '<p>' });
    const { encode, decode } = await loadTokenizer(directory);
    expect([...encode('<p>ab\u{1f642}<e>')]).toEqual([1, 3, 2, 4, 0]);
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '\u{1f642}', '<e>', '<p>') });
    fc.assert(
      fc.property(text, t => {
        expect(decode(encode(t), { special: true })).toBe(t);
      }),
    );
  });

  it('refuses a vocabulary that does not fit together', async () => {
    const write = (change: Partial<CharTokenizerOptions>) =>
      writeCharTokenizer(directory, { alphabet: 'ab', special: ['<e>'], eos: '<e>', pad: '<e>', ...change });
    await expect(write({ alphabet: 'aba' })).rejects.toThrow(/"a" occurs twice/);
    await expect(write({ pad: '<p>' })).rejects.toThrow(/pad is "<p>", which is not among/);
    await expect(write({ special: ['<e>', ''] })).rejects.toThrow(/empty text/);
  });
});
