import { chatRenderer } from '../text/chat-renderer.ts';
import type { Renderer, TextCodec } from '../text/renderer.ts';
import { chatTemplate } from '../text/template.ts';

/** Ids of the byte tokenizer's special tokens; ids below 256 are the bytes of UTF-8. */
export const BYTE_SPECIAL = { start: 256, end: 257, endOfText: 258, pad: 259 } as const;

const SPECIAL_TEXT = ['<|im_start|>', '<|im_end|>', '<|endoftext|>', '<|pad|>'] as const;
const SPECIAL_PATTERN = /(<\|im_start\|>|<\|im_end\|>|<\|endoftext\|>|<\|pad\|>)/;

const TEMPLATE = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const byteCodec: TextCodec = {
  vocabularySize: 256 + SPECIAL_TEXT.length,
  encode(text) {
    const tokens: number[] = [];
    for (const part of text.split(SPECIAL_PATTERN)) {
      const special = (SPECIAL_TEXT as readonly string[]).indexOf(part);
      if (special >= 0) tokens.push(256 + special);
      else for (const byte of Buffer.from(part, 'utf8')) tokens.push(byte);
    }
    return Int32Array.from(tokens);
  },
  decode(tokens, { special = false } = {}) {
    let text = '';
    let bytes: number[] = [];
    const flush = () => {
      text += Buffer.from(bytes).toString('utf8');
      bytes = [];
    };
    for (const token of Array.from(tokens)) {
      if (token < 256) {
        bytes.push(token);
      } else if (special) {
        flush();
        text += SPECIAL_TEXT[token - 256] ?? '';
      }
    }
    flush();
    return text;
  },
};

/**
 * A renderer that needs no files: one token per UTF-8 byte, four special tokens and a ChatML template. Answers end with
 * `<|im_end|>` or `<|endoftext|>`.
 */
export function byteRenderer(): Renderer {
  return chatRenderer({
    codec: byteCodec,
    template: chatTemplate(TEMPLATE),
    stopTokens: [BYTE_SPECIAL.end, BYTE_SPECIAL.endOfText],
  });
}
