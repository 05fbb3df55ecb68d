import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface CharTokenizerOptions {
  /** Every character (code point) is one token. */
  readonly alphabet: string;
  /** Special tokens by their text; `eos` and `pad` are among them. */
  readonly special: readonly string[];
  /** Ends an answer. */
  readonly eos: string;
  readonly pad: string;
  readonly bos?: string;
  /** Jinja source of the chat template. */
  readonly chatTemplate?: string;
}

/**
 * Writes the tokenizer of a small model that reads characters, as `tokenizer.json`, `tokenizer_config.json` and
 * `chat_template.jinja`, so that this library and Transformers load it. Ids: the special tokens in their order from 0,
 * then the characters in theirs. There is no unknown token: text outside the alphabet is an error (tokenizer.ts).
 * Returns the size of the vocabulary.
 */
export async function writeCharTokenizer(directory: string, options: CharTokenizerOptions): Promise<number> {
  const { special, eos, pad, bos, chatTemplate } = options;
  const tokens = [...special, ...options.alphabet];
  const twice = tokens.find((token, place) => tokens.indexOf(token) !== place);
  if (twice !== undefined) throw new Error(`${JSON.stringify(twice)} occurs twice among special tokens and alphabet`);
  if (special.includes('')) throw new Error('a special token is empty text');
  for (const [name, token] of Object.entries({ eos, pad, bos })) {
    if (token !== undefined && !special.includes(token)) {
      throw new Error(`${name} is ${JSON.stringify(token)}, which is not among the special tokens [${special}]`);
    }
  }

  const definition = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: special.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    // One piece a character: the model below then never sees more, and libraries cache pieces, not whole texts.
    pre_tokenizer: { type: 'Split', pattern: { Regex: '[\\s\\S]' }, behavior: 'Isolated', invert: false },
    post_processor: null,
    decoder: { type: 'Fuse' },
    // Byte-pair encoding without a merge leaves characters.
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: [],
    },
  };
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    clean_up_tokenization_spaces: false,
    ...(bos === undefined ? {} : { bos_token: bos }),
    eos_token: eos,
    pad_token: pad,
  };
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'tokenizer.json'), `${JSON.stringify(definition, null, 1)}\n`);
  await writeFile(join(directory, 'tokenizer_config.json'), `${JSON.stringify(config, null, 1)}\n`);
  if (chatTemplate !== undefined) await writeFile(join(directory, 'chat_template.jinja'), chatTemplate);
  return tokens.length;
}
