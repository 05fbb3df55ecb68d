import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { tokenizer } from './tokenizer.ts';

const directory = fileURLToPath(new URL('../../tests/goldens/text/bytes/', import.meta.url));
const read = async (name: string) => JSON.parse(await readFile(`${directory}${name}`, 'utf8'));

it('decodes any ids as the library does', async () => {
  const definition = await read('tokenizer.json');
  const config = await read('tokenizer_config.json');
  const library = new LibraryTokenizer(definition, config);
  const { decode, encode, vocabularySize } = tokenizer(definition, config);
  const special = new Set(
    [...library.get_added_tokens_decoder()].flatMap(([id, { special }]) => (special ? [id] : [])),
  );
  const expected = (ids: readonly number[], shown: boolean) => {
    const kept = ids.filter(id => library.model!.vocab[id] !== undefined && (shown || !special.has(id)));
    return kept.length === 0 ? '' : library.decode(kept, { clean_up_tokenization_spaces: false });
  };
  const check = (ids: readonly number[]) => {
    for (const shown of [true, false]) expect(decode(ids, { special: shown })).toBe(expected(ids, shown));
  };
  // Any ids: characters cut in the middle, bytes that are no text, ids that do not exist.
  fc.assert(fc.property(fc.array(fc.integer({ min: 0, max: vocabularySize + 3 })), check), { numRuns: 500 });
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(3), (text, cut) => {
      const ids = [...encode(text)];
      check(ids.slice(0, Math.max(0, ids.length - cut)));
    }),
  );
});

const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true };
const DIGITS = { type: 'Digits', individual_digits: true };

it.each([
  ['its own words', undefined],
  ["GPT-2's words", { ...BYTE_LEVEL, use_regex: true }],
  ["GPT-2's words and digits", { type: 'Sequence', pretokenizers: [DIGITS, { ...BYTE_LEVEL, use_regex: true }] }],
])('encodes any text as the library does, with %s', async (_, words) => {
  const original = await read('tokenizer.json');
  const definition = { ...original, pre_tokenizer: words ?? original.pre_tokenizer };
  const config = await read('tokenizer_config.json');
  const library = new LibraryTokenizer(definition, config);
  const { encode } = tokenizer(definition, config);
  const check = (text: string) => {
    expect([...encode(text)]).toEqual(library.encode(text, { add_special_tokens: false }).ids);
  };
  const special = fc.constantFrom(
    '<|im_start|>',
    '<|im_end|>',
    '<|endoftext|>',
    '<|im_',
    "it's",
    "I'LL ",
    ' \n\n ',
    '  ',
    '1234',
    'é',
  );
  const text = fc.array(fc.oneof(special, fc.string(), fc.string({ unit: 'binary' }))).map(parts => parts.join(''));
  // Known words the second time.
  fc.assert(
    fc.property(text, text, (a, b) => [a, b, a + b, a].forEach(check)),
    { numRuns: 300 },
  );
});
