import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkVocabulary, loadTokenizer, tokenizer } from './tokenizer.ts';

const goldens = fileURLToPath(new URL('../../tests/goldens/text/', import.meta.url));
const golden = JSON.parse(await readFile(join(goldens, 'tokens.json'), 'utf8'));

interface Row {
  readonly text: string;
  readonly ids: number[];
  readonly special: string;
  readonly plain: string;
}

describe.each(['bytes', 'metaspace', 'chars'])('the %s tokenizer', name => {
  it('encodes and decodes as Transformers does', async () => {
    const { encode, decode, vocabularySize, specialTokens } = await loadTokenizer(join(goldens, name));
    expect(vocabularySize).toBe(golden[name].size);
    expect(specialTokens).toEqual(golden[name].special);
    const rows: Row[] = golden[name].rows;
    expect(rows.length).toBeGreaterThan(3);
    for (const row of rows) {
      expect([...encode(row.text)]).toEqual(row.ids);
      expect(decode(row.ids, { special: true })).toBe(row.special);
      expect(decode(row.ids)).toBe(row.plain);
    }
  });
});

describe('text that a vocabulary cannot express', () => {
  it('is an error that names the character and its place', async () => {
    const { encode } = await loadTokenizer(join(goldens, 'chars'));
    expect(() => encode('12<eos>3\u00d74')).toThrow(/cannot express "\u00d7" \(U\+00D7\) at position 8 of the text/);
    expect(() => encode('a\u{1f642}')).toThrow(/"\u{1f642}" \(U\+1F642\) at position 1/u);
    // '<' occurs in the special tokens only.
    expect(() => encode('<eos><eos')).toThrow(/cannot express "<" \(U\+003C\) at position 5/);
    expect([...encode('<eos>1')]).toEqual([2, 4]);
  });

  it('is what the vocabulary says where it has an unknown token', () => {
    const { encode } = tokenizer(definition({ a: 0, '?': 1 }, { unk_token: '?' }));
    expect([...encode('aza')]).toEqual([0, 1, 0]);
  });

  it('is found for tokens that the model of a tokenizer does not check', () => {
    const { encode } = tokenizer(definition({ a: 0 }, { type: 'WordLevel' }));
    expect([...encode('a')]).toEqual([0]);
    expect(() => encode('z')).toThrow(/cannot express "z"/);
  });
});

describe('decode', () => {
  it('leaves out ids without text and takes any list of ids', () => {
    const { decode } = tokenizer(definition({ a: 0, b: 5 }));
    expect(decode(Int32Array.of(0, 3, 5, 99))).toBe('ab');
    expect(decode([])).toBe('');
    expect(decode([7])).toBe('');
  });
});

describe('bad files', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tokenizer-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('are named, with what is wrong', async () => {
    await expect(loadTokenizer(directory)).rejects.toThrow(/has no tokenizer\.json/);
    const file = join(directory, 'tokenizer.json');
    await writeFile(file, '{"model": ');
    await expect(loadTokenizer(directory)).rejects.toThrow(/tokenizer\.json is not valid JSON/);
    await writeFile(file, '[1]');
    await expect(loadTokenizer(directory)).rejects.toThrow(/tokenizer\.json holds a list/);
    await writeFile(file, '{"model": {}}');
    await expect(loadTokenizer(directory)).rejects.toThrow(/tokenizer\.json is not a usable tokenizer: .*decoder/);
    await writeFile(file, JSON.stringify(definition({ a: 0 })));
    expect((await loadTokenizer(directory)).specialTokens).toEqual({});
    await writeFile(join(directory, 'tokenizer_config.json'), 'eos');
    await expect(loadTokenizer(directory)).rejects.toThrow(/tokenizer_config\.json is not valid JSON/);
  });

  it('include a tokenizer with more tokens than the model', () => {
    checkVocabulary({ vocabularySize: 10 }, 16);
    expect(() => checkVocabulary({ vocabularySize: 17 }, 16)).toThrow(/17 tokens but the model has embeddings for 16/);
  });
});

function definition(vocab: Record<string, number>, model: Record<string, unknown> = {}) {
  return {
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: 'Fuse' },
    model: { type: 'BPE', vocab, merges: [], ...model },
  };
}
