import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../episode/failure.ts';

/** The bytes that each token stands for, so that text can be looked for in tokens that split its characters. */
export type TokenBytes = (token: number) => Uint8Array;

type Decoder = { readonly type: string; readonly [key: string]: unknown };
/** What a decoder makes of the text of one token; bytes end the chain. */
type Rule = (text: string) => string | Uint8Array;

const tokenizerShape = z.object({
  model: z.object({ vocab: z.union([z.record(z.string(), z.int()), z.array(z.tuple([z.string(), z.number()]))]) }),
  added_tokens: z.array(z.object({ id: z.int(), content: z.string() })).default([]),
  decoder: z.looseObject({ type: z.string() }).nullish(),
});

/**
 * Reads the table from the contents of `tokenizer.json`. Ids that stand for no text have no bytes. What a decoder does
 * to a text's beginning alone (the space that some prepend is removed again) is left out: an answer is a continuation.
 * Throws for a decoder that puts something between tokens.
 */
export function tokenBytes(definition: unknown): TokenBytes {
  const { model, added_tokens: added, decoder } = tokenizerShape.parse(definition);
  const texts = new Map<number, string>();
  if (Array.isArray(model.vocab)) for (const [id, [text]] of model.vocab.entries()) texts.set(id, text);
  else for (const [text, id] of Object.entries(model.vocab)) texts.set(id, text);
  const verbatim = new Map(added.map(({ id, content }) => [id, content]));
  if (!decoder)
    throw new Error('the tokenizer has no decoder and joins its tokens with spaces; leave stop strings out');
  const rules = rulesOf(decoder);
  const known = new Map<number, Uint8Array>();
  const utf8 = new TextEncoder();

  const bytesOf = (token: number): Uint8Array => {
    const content = verbatim.get(token);
    if (content !== undefined) return utf8.encode(content);
    let text: string | Uint8Array = texts.get(token) ?? '';
    for (const rule of rules) {
      if (typeof text !== 'string') break;
      text = rule(text);
    }
    return typeof text === 'string' ? utf8.encode(text) : text;
  };
  return token => {
    let bytes = known.get(token);
    if (bytes === undefined) {
      bytes = bytesOf(token);
      known.set(token, bytes);
    }
    return bytes;
  };
}

/** The table of a checkpoint directory. */
export function readTokenBytes(directory: string): TokenBytes {
  const file = join(directory, 'tokenizer.json');
  try {
    return tokenBytes(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new Error(`stop strings need the text of tokens, which ${file} does not give: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function rulesOf(decoder: Decoder): Rule[] {
  switch (decoder.type) {
    case 'Sequence':
      return (decoder.decoders as readonly Decoder[]).flatMap(rulesOf);
    case 'ByteLevel':
      return [byteLevel];
    case 'ByteFallback':
      return [byteFallback];
    case 'Replace':
      return [replacing(decoder.pattern as { String?: string; Regex?: string }, String(decoder.content))];
    case 'Metaspace':
      return [text => text.replaceAll(String(decoder.replacement ?? '▁'), ' ')];
    // They join, and take away from the beginning of the text.
    case 'Fuse':
    case 'Strip':
      return [];
    default:
      throw new Error(
        `the tokenizer's decoder ${decoder.type} does not say which bytes a single token stands for; leave stop strings out`,
      );
  }
}

function replacing({ String: text, Regex: source }: { String?: string; Regex?: string }, content: string): Rule {
  const pattern = source === undefined ? undefined : new RegExp(source, 'gu');
  return from => (pattern ? from.replace(pattern, content) : from.replaceAll(text ?? '', content));
}

function byteFallback(text: string): string | Uint8Array {
  const code = /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1];
  return code === undefined ? text : Uint8Array.of(Number.parseInt(code, 16));
}

/**
 * Byte-level vocabularies (GPT-2) write each byte as a printable character: itself where it is one, otherwise the next
 * free one from U+0100 on. Text with other characters is taken as it is.
 */
export const BYTE_OF: ReadonlyMap<string, number> = (() => {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 0x100;
  return new Map(
    Array.from({ length: 256 }, (_, byte) => [String.fromCharCode(printable(byte) ? byte : next++), byte] as const),
  );
})();

function byteLevel(text: string): string | Uint8Array {
  const bytes = Array.from(text, character => BYTE_OF.get(character));
  return bytes.every(byte => byte !== undefined) ? Uint8Array.from(bytes) : text;
}
