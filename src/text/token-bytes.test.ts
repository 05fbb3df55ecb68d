import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tokenBytes } from './token-bytes.ts';
import { tokenizer } from './tokenizer.ts';

const goldens = fileURLToPath(new URL('../../tests/goldens/text/', import.meta.url));

async function definition(name: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(join(goldens, name, 'tokenizer.json'), 'utf8'));
}

describe.each(['bytes', 'metaspace', 'chars'])('the bytes of the tokens of the %s tokenizer', name => {
  it('are, one after another, the text that the tokenizer decodes', async () => {
    const file = await definition(name);
    const { decode, encode, vocabularySize } = tokenizer(file);
    const bytes = tokenBytes(file);
    const joined = (tokens: readonly number[]) => Buffer.concat(tokens.map(bytes)).toString();
    // A word in front, because some decoders take a space from the beginning.
    const front = [...encode(name === 'chars' ? 'x' : 'The')];
    const begun = decode(front, { special: true }).length;
    fc.assert(
      fc.property(fc.array(fc.nat(vocabularySize - 1), { maxLength: 20 }), tokens => {
        const decoded = decode([...front, ...tokens], { special: true });
        const text = joined(tokens);
        // Bytes that are no text are replaced, in one way or another.
        fc.pre(!text.includes('\ufffd') && !decoded.includes('\ufffd'));
        expect(text).toBe(decoded.slice(begun));
      }),
      { numRuns: 300 },
    );
  });
});

describe('token bytes', () => {
  const of = (decoder: object | null, vocab: object = { a: 0 }) => tokenBytes({ model: { vocab }, decoder });

  it('hold characters that several tokens share', async () => {
    const file = await definition('bytes');
    const { encode } = tokenizer(file);
    const tokens = [...encode('🙂')];
    expect(tokens.length).toBeGreaterThan(1);
    expect(Buffer.concat(tokens.map(tokenBytes(file)))).toEqual(Buffer.from('🙂'));
  });

  it('are none for ids without text', () => {
    expect([...of({ type: 'Fuse' })(7)]).toEqual([]);
  });

  it('are read from vocabularies with scores, and from patterns', () => {
    const vocab = [
      ['<unk>', 0],
      ['▁ab', -1.5],
    ];
    expect(Buffer.from(of({ type: 'Metaspace', replacement: '▁' }, vocab)(1)).toString()).toBe(' ab');
    const replace = { type: 'Replace', pattern: { Regex: 'b+' }, content: '-' };
    expect(Buffer.from(of(replace, { abbba: 3 })(3)).toString()).toBe('a-a');
  });

  it('are refused where tokens are joined in another way', () => {
    expect(() => of({ type: 'WordPiece', prefix: '##' })).toThrow(
      /decoder WordPiece does not say .* leave stop strings/,
    );
    expect(() => of(null)).toThrow(/no decoder/);
  });
});
