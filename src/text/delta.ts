import type { Delta, TextCodec } from './renderer.ts';

/**
 * The tokens that new messages add after a sampled answer.
 *
 * What the policy has seen and sampled is fixed: those ids are never encoded again. The new conversation (earlier
 * messages, the answer, the added messages, the prompt for the next answer) is rendered as text, and the text of the
 * context is laid over its beginning.
 *
 * - Where the context's text is the beginning of the rendering, the rest is the delta, tokenised once. An answer that
 *   was cut before its end of turn, and the newline that many templates write after it, need no special care: both
 *   are part of the rest.
 * - White space is not compared, because templates trim what they show; the sampled white space stands.
 * - Everything else is a difference in what the policy would be told about its own past (reasoning dropped from earlier
 *   turns, a rewritten history, a different end of turn): the rendering is tokenised as a whole, as a new branch.
 *
 * So the invariant is: text(context) + text(delta) = rendering, up to white space, or the context is a branch whose
 * text is the rendering. Nothing depends on the dialect of the template or on which tokens are special.
 */
export function delta(codec: TextCodec, context: Int32Array, rendering: string): Delta {
  const seen = codec.decode(context, { special: true });
  let whole = rendering;
  let at = overlay(seen, whole);
  if (at.end === undefined) {
    // A tokenizer that normalises text shows its own form of it, never the original one: compare in that form.
    whole = codec.decode(codec.encode(rendering), { special: true });
    if (whole !== rendering) at = overlay(seen, whole);
  }
  if (at.end !== undefined) {
    return { kind: 'append', tokens: encodeAfter(codec, context.at(-1), whole.slice(at.end)) };
  }
  return { kind: 'branch', tokens: codec.encode(rendering), reason: difference(seen, whole, at) };
}

interface Overlay {
  /** Where in the longer text the shorter one ends; undefined when it is not its beginning. */
  readonly end?: number;
  /** Positions of the first difference. */
  readonly seen: number;
  readonly shown: number;
}

const isSpace = (character: string | undefined) => character !== undefined && /\s/.test(character);

/** Lays `seen` over the beginning of `shown`, white space aside. */
function overlay(seen: string, shown: string): Overlay {
  let i = 0;
  let j = 0;
  while (i < seen.length) {
    if (seen[i] === shown[j]) {
      i += 1;
      j += 1;
    } else if (isSpace(seen[i])) {
      i += 1;
    } else if (isSpace(shown[j])) {
      j += 1;
    } else {
      return { seen: i, shown: j };
    }
  }
  return { end: j, seen: i, shown: j };
}

/**
 * Tokens of `text` as they are after the token `last`: a special token before it keeps a tokenizer that marks the
 * beginning of a text (SentencePiece's leading space) from taking the delta for one.
 */
export function encodeAfter(codec: TextCodec, last: number | undefined, text: string): Int32Array {
  if (last === undefined || text === '') return codec.encode(text);
  const isSpecial = codec.decode([last]) === '' && codec.decode([last], { special: true }) !== '';
  if (!isSpecial) return codec.encode(text);
  const tokens = codec.encode(codec.decode([last], { special: true }) + text);
  return tokens[0] === last ? tokens.subarray(1).slice() : codec.encode(text);
}

function difference(seen: string, shown: string, at: Overlay): string {
  const excerpt = (text: string, position: number) => {
    const start = Math.max(0, position - 20);
    return JSON.stringify(text.slice(start, position + 20));
  };
  return (
    `the chat template now shows ${excerpt(shown, at.shown)} where the policy saw or sampled ` +
    `${excerpt(seen, at.seen)} (character ${at.seen} of its context)`
  );
}
