import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { z } from 'zod';
import { BYTE_OF } from './token-bytes.ts';

/** What one id stands for: a special or added token as it is, text, or bytes that may be part of a character. */
type Piece = { readonly verbatim: string } | { readonly ascii: string } | { readonly bytes: readonly number[] };

/**
 * Decodes byte-level vocabularies (GPT-2) as the tokenizer library does, by a table that is filled as ids are met: an
 * environment that reads every answer decodes each context several times, and most of it is ASCII.
 * @param vocabulary text of each id @param special ids that are shown only when asked for
 * @param added texts of tokens that stand for themselves
 */
export function byteLevelDecoder(
  vocabulary: readonly (string | undefined)[],
  special: ReadonlySet<number>,
  added: ReadonlySet<string>,
): (tokens: ArrayLike<number>, withSpecial: boolean) => string {
  const pieces: (Piece | undefined)[] = [];
  // As the library has it: bytes that are no text become replacement characters, and a mark of the byte order stays.
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

  const pieceOf = (text: string): Piece => {
    if (added.has(text)) return { verbatim: text };
    const bytes = Array.from(text, character => BYTE_OF.get(character) ?? 0);
    return bytes.every(byte => byte < 0x80) ? { ascii: String.fromCharCode(...bytes) } : { bytes };
  };

  return (tokens, withSpecial) => {
    let text = '';
    let pending: number[] = [];
    for (let i = 0; i < tokens.length; i++) {
      const id = tokens[i]!;
      const known = vocabulary[id];
      if (known === undefined || (!withSpecial && special.has(id))) continue;
      pieces[id] ??= pieceOf(known);
      const piece = pieces[id];
      if ('bytes' in piece) {
        pending.push(...piece.bytes);
        continue;
      }
      // ASCII ends a character, also one that is not complete.
      if (pending.length > 0) {
        text += utf8.decode(Uint8Array.from(pending));
        pending = [];
      }
      text += 'ascii' in piece ? piece.ascii : piece.verbatim;
    }
    return pending.length > 0 ? text + utf8.decode(Uint8Array.from(pending)) : text;
  };
}

/** How GPT-2 cuts text into words; the library has it inside its byte-level step. Digits by themselves come before. */
const WORDS = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/** The same where every digit is a word of its own: they are taken out first, so a word ends before one. */
const WORDS_AND_DIGITS = `\\d|${WORDS}`.replace('\\p{N}+', '(?:(?!\\d)\\p{N})+').replace('(?!\\S)', '(?![^\\s\\d])');
const CHARACTER_OF = new Map([...BYTE_OF].map(([character, byte]) => [byte, character]));
const MOST_WORDS = 1 << 16;

const step = z.looseObject({ type: z.string() });
const plain = z.object({ normalized: z.literal(false), lstrip: z.literal(false), rstrip: z.literal(false) });
const digitsStep = z.object({ type: z.literal('Digits'), individual_digits: z.literal(true) });
const byteLevelStep = z.object({
  type: z.literal('ByteLevel'),
  add_prefix_space: z.literal(false),
  use_regex: z.boolean().default(true),
});

/**
 * Encodes as the library does, and remembers the ids of words: most of what environments say was said before, in
 * another order. Undefined for a tokenizer that is not a byte-level one, or does more than cut text into words.
 */
export function byteLevelEncoder(
  library: LibraryTokenizer,
  definition: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, unknown>>,
): ((text: string) => Int32Array) | undefined {
  const words = wordsOf(definition, config);
  const model = library.model;
  if (words === undefined || model === null) return undefined;
  const added = new Map([...library.get_added_tokens_decoder()].map(([id, { content }]) => [content, id]));
  const separator = added.size === 0 ? undefined : separatorOf([...added.keys()]);
  const known = new Map<string, readonly number[]>();
  const utf8 = new TextEncoder();

  const idsOf = (word: string): readonly number[] => {
    const mapped = Array.from(utf8.encode(word), byte => CHARACTER_OF.get(byte)).join('');
    const ids = (model([mapped]) as string[]).map(token => library.token_to_id(token)!);
    if (known.size === MOST_WORDS) known.clear();
    known.set(word, ids);
    return ids;
  };

  return text => {
    const ids: number[] = [];
    // Splitting by a group puts the added tokens at the odd places.
    const sections = separator?.test(text) ? text.split(separator) : [text];
    for (let place = 0; place < sections.length; place++) {
      const section = sections[place]!;
      if (place % 2 === 1) {
        ids.push(added.get(section)!);
        continue;
      }
      const normalized = section === '' ? '' : (library.normalizer?.(section) ?? section);
      if (normalized === '') continue;
      for (const word of words(normalized)) for (const id of known.get(word) ?? idsOf(word)) ids.push(id);
    }
    return new Int32Array(ids);
  };
}

/** Cuts text into words with the library's own steps, up to the byte-level one. */
function wordsOf(
  definition: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, unknown>>,
): ((text: string) => string[]) | undefined {
  const { added_tokens: added = [], pre_tokenizer: whole, model } = definition;
  const simple = z.array(plain).safeParse(added).success && step.safeParse(model).data?.type === 'BPE';
  if (!simple || config.remove_space === true || config.do_lowercase_and_remove_accent === true) return undefined;
  const steps = z.object({ type: z.literal('Sequence'), pretokenizers: z.array(step) }).safeParse(whole).data;
  const all = steps?.pretokenizers ?? [whole];
  const last = byteLevelStep.safeParse(all.at(-1)).data;
  if (last === undefined) return undefined;
  // The most usual two are cut here, without the library's detour over one list for each step.
  const own = new RegExp(WORDS, 'gu');
  if (last.use_regex && all.length === 1) return text => text.match(own) ?? [];
  if (last.use_regex && all.length === 2 && digitsStep.safeParse(all[0]).success) {
    const withDigits = new RegExp(WORDS_AND_DIGITS, 'gu');
    return text => text.match(withDigits) ?? [];
  }
  const cut = { type: 'Split', pattern: { Regex: WORDS }, behavior: 'Isolated', invert: true };
  const before = [...all.slice(0, -1), ...(last.use_regex ? [cut] : [])];
  const none = { type: 'BPE', vocab: {}, merges: [] };
  const cutting = {
    ...definition,
    added_tokens: [],
    model: none,
    pre_tokenizer: { type: 'Sequence', pretokenizers: before },
  };
  const { pre_tokenizer: words } = new LibraryTokenizer(cutting, {});
  return words === null || before.length === 0 ? undefined : text => words(text);
}

function separatorOf(texts: readonly string[]): RegExp {
  const longestFirst = [...texts].sort((a, b) => b.length - a.length);
  return new RegExp(`(${longestFirst.map(text => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})`, 'u');
}
