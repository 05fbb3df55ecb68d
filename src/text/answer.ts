import { encodeAfter } from './delta.ts';
import type { TextCodec } from './renderer.ts';

/** A conversation that ends with an answer, as text. */
export interface ShownAnswer {
  /** The last token of the prompt. */
  readonly after: number | undefined;
  /** Up to the point where the policy answers. */
  readonly prompt: string;
  /** With the answer behind it. */
  readonly whole: string;
  /** The answer as it was given, for templates that show another prompt once it is answered. */
  readonly content: string;
}

/**
 * The tokens that a policy would have to sample so that the template shows this answer: what the template writes behind
 * the prompt, up to the stop token that ends it. Line breaks behind that one are fed, not sampled. Where the template
 * ends an answer with no stop token, the first one of the model is put behind it.
 *
 * The answer is encoded by itself behind the last token of the prompt, since those tokens are fixed when it is sampled.
 */
export function answerTokens(codec: TextCodec, stopTokens: readonly number[], shown: ShownAnswer): Int32Array {
  const text = shown.whole.startsWith(shown.prompt) ? shown.whole.slice(shown.prompt.length) : undefined;
  if (text === undefined) return sampledAlone(codec, stopTokens, shown);
  const tokens = encodeAfter(codec, shown.after, text);
  const end = endOf(codec, stopTokens, tokens);
  if (end !== undefined) return tokens.slice(0, end + 1);
  return Int32Array.from([...encodeAfter(codec, shown.after, text.trimEnd()), firstStop(stopTokens)]);
}

/** The answer's own text with the token that ends the whole rendering. */
function sampledAlone(codec: TextCodec, stopTokens: readonly number[], shown: ShownAnswer): Int32Array {
  // Reasoning that the prompt opened goes on in the answer.
  const opened = /<think>\s*$/.test(shown.prompt);
  const text = opened ? shown.content.replace(/^\s*<think>\s*/, '') : shown.content;
  const rendering = codec.encode(shown.whole);
  const end = endOf(codec, stopTokens, rendering);
  const stop = end === undefined ? firstStop(stopTokens) : rendering[end]!;
  return Int32Array.from([...encodeAfter(codec, shown.after, text), stop]);
}

/** Where the stop token stands behind which nothing but white space comes. */
function endOf(codec: TextCodec, stopTokens: readonly number[], tokens: Int32Array): number | undefined {
  const end = tokens.findLastIndex(token => stopTokens.includes(token));
  if (end < 0) return undefined;
  return codec.decode(tokens.subarray(end + 1), { special: true }).trim() === '' ? end : undefined;
}

function firstStop(stopTokens: readonly number[]): number {
  const [stop] = stopTokens;
  if (stop === undefined) throw new Error('the tokenizer names no end-of-sequence token, so answers cannot end');
  return stop;
}
