import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { messageOf } from '../episode/failure.ts';
import { byteLevelDecoder, byteLevelEncoder } from './byte-level.ts';
import { readJson } from './files.ts';
import type { TextCodec } from './renderer.ts';
import { BYTE_OF } from './token-bytes.ts';

/** The tokenizer of a checkpoint. */
export interface Tokenizer extends TextCodec {
  /** `bos_token`, `eos_token`, `pad_token` … of tokenizer_config.json: what chat templates call the special tokens. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Id of a token by its name in the vocabulary. */
  tokenId(token: string): number | undefined;
}

/**
 * Reads `tokenizer.json` and, where there is one, `tokenizer_config.json` of a checkpoint directory.
 * Encoding adds no special tokens and decoding is exact: nothing is cleaned up.
 */
export async function loadTokenizer(directory: string): Promise<Tokenizer> {
  const definition = await readJson(directory, 'tokenizer.json');
  if (definition === undefined) {
    if (!existsSync(directory)) throw new Error(`${directory}: no such directory; give one with a checkpoint in it`);
    throw new Error(
      `${directory} has no tokenizer.json; give a checkpoint directory in the layout of Hugging Face (a tokenizer in ` +
        'another form is converted by loading and saving it once with Transformers)',
    );
  }
  const config = (await readJson(directory, 'tokenizer_config.json')) ?? {};
  try {
    return tokenizer(definition, config);
  } catch (error) {
    throw new Error(`${join(directory, 'tokenizer.json')} is not a usable tokenizer: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** A tokenizer of the contents of `tokenizer.json` and `tokenizer_config.json`. */
export function tokenizer(
  definition: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, unknown>> = {},
): Tokenizer {
  const library = new LibraryTokenizer(definition, config);
  const { model } = library;
  if (model === null) throw new Error('it defines no model');
  const special = new Set(
    [...library.get_added_tokens_decoder()].flatMap(([id, token]) => (token.special ? [id] : [])),
  );
  const added = new Set([...library.get_added_tokens_decoder().values()].map(({ content }) => content));
  const byteLevel = isByteLevel(definition) ? byteLevelDecoder(model.vocab, special, added) : undefined;
  const fastEncode = byteLevelEncoder(library, definition, config);
  const anyText = fastEncode !== undefined && [...BYTE_OF.keys()].every(byte => model.tokens_to_ids.has(byte));
  const check = !anyText && (model.unk_token_id ?? undefined) === undefined ? characterCheck(library) : undefined;

  return {
    vocabularySize: model.vocab.length,
    specialTokens: specialTokens(config),
    tokenId: token => library.token_to_id(token),
    encode(text) {
      check?.(text);
      if (fastEncode !== undefined) return fastEncode(text);
      return Int32Array.from(library.encode(text, { add_special_tokens: false }).ids);
    },
    decode(tokens, options = {}) {
      if (byteLevel !== undefined) return byteLevel(tokens, options.special === true);
      const shown = Array.from(tokens).filter(
        id => model.vocab[id] !== undefined && (options.special === true || !special.has(id)),
      );
      return shown.length === 0 ? '' : library.decode(shown, { clean_up_tokenization_spaces: false });
    },
  };
}

function isByteLevel({ decoder }: Readonly<Record<string, unknown>>): boolean {
  return typeof decoder === 'object' && decoder !== null && 'type' in decoder && decoder.type === 'ByteLevel';
}

/** Throws when the tokenizer has ids for which the model has no embedding. */
export function checkVocabulary(codec: Pick<TextCodec, 'vocabularySize'>, modelVocabularySize: number): void {
  if (codec.vocabularySize <= modelVocabularySize) return;
  throw new Error(
    `the tokenizer has ${codec.vocabularySize} tokens but the model has embeddings for ${modelVocabularySize}; ` +
      'use the tokenizer of the same checkpoint, or enlarge vocab_size before training',
  );
}

function specialTokens(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(config)) {
    if (!name.endsWith('_token')) continue;
    const content = typeof value === 'object' && value !== null && 'content' in value ? value.content : value;
    if (typeof content === 'string') found[name] = content;
  }
  return found;
}

/**
 * A vocabulary without an unknown token drops the characters that it cannot express, in this library as in the
 * original; the policy would see another text than the environment wrote. The check throws instead.
 */
function characterCheck(library: LibraryTokenizer): (text: string) => void {
  const model = library.model!;
  const known = new Set<string>();
  const added = [...library.get_added_tokens_decoder().values()].map(token => token.content);
  const separator = added.length === 0 ? undefined : new RegExp(`(${longestFirst(added).map(escaped).join('|')})`, 'u');

  const expressible = (character: string): boolean => {
    const pieces = library.pre_tokenizer === null ? [character] : library.pre_tokenizer(character);
    const tokens: string[] = model(pieces);
    const length = (parts: readonly string[]) => parts.reduce((sum, part) => sum + part.length, 0);
    return length(tokens) >= length(pieces) && tokens.every(token => model.tokens_to_ids.has(token));
  };

  return text => {
    // Splitting by a group puts the added tokens at the odd places.
    const sections = separator === undefined ? [text] : text.split(separator);
    let start = 0;
    for (const [place, section] of sections.entries()) {
      const normalized = place % 2 === 1 ? '' : (library.normalizer?.(section) ?? section);
      for (const character of normalized) {
        if (known.has(character)) continue;
        if (!expressible(character)) throw unknownCharacter(text, character, start);
        known.add(character);
      }
      start += section.length;
    }
  };
}

function unknownCharacter(text: string, character: string, from: number): Error {
  const position = Math.max(from, text.indexOf(character, from));
  const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
  const around = text.slice(Math.max(0, position - 20), position + 20);
  return new Error(
    `the vocabulary cannot express ${JSON.stringify(character)} (U+${code}) at position ${position} of the text, ` +
      `near ${JSON.stringify(around)}; remove it, or use a tokenizer whose vocabulary has it`,
  );
}

const longestFirst = (texts: readonly string[]) => [...texts].sort((a, b) => b.length - a.length);
const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
