import type { TokenBytes } from './token-bytes.ts';

/**
 * Looks for stop strings in an answer while it is sampled. It compares bytes, so a string is found wherever tokens
 * begin and end, also inside of a character: in UTF-8 equal bytes are equal text.
 */
export class StopStrings {
  readonly #strings: readonly { readonly text: string; readonly bytes: Buffer }[];
  readonly #tokenBytes: TokenBytes;
  /** The end of the answer so far, as long as a string can still begin in it. */
  #tail: Uint8Array = new Uint8Array(0);
  readonly #kept: number;

  constructor(strings: readonly string[], tokenBytes: TokenBytes) {
    this.#strings = strings.map(text => ({ text, bytes: Buffer.from(text) }));
    this.#tokenBytes = tokenBytes;
    this.#kept = Math.max(...this.#strings.map(({ bytes }) => bytes.length)) - 1;
  }

  /**
   * The next token of the answer. Returns the string that it completes: the one that is complete first, and the longest
   * of those that are at the same time.
   */
  push(token: number): string | undefined {
    const seen = Buffer.concat([this.#tail, this.#tokenBytes(token)]);
    let first: { readonly text: string; readonly end: number; readonly length: number } | undefined;
    for (const { text, bytes } of this.#strings) {
      const at = seen.indexOf(bytes);
      if (at < 0) continue;
      const found = { text, end: at + bytes.length, length: bytes.length };
      if (first === undefined || found.end < first.end || (found.end === first.end && found.length > first.length)) {
        first = found;
      }
    }
    this.#tail = seen.subarray(Math.max(0, seen.length - this.#kept));
    return first?.text;
  }
}

/** The text up to the stop string that ended it, which stays if `include` says so; unchanged when it is not in there. */
export function cutAtStop(text: string, stop: string | undefined, include: boolean): string {
  const at = stop === undefined ? -1 : text.indexOf(stop);
  if (at < 0) return text;
  return text.slice(0, include ? at + stop!.length : at);
}

/** The part of an unfinished answer's text that no stop string can take away any more. */
export function settled(text: string, stops: readonly string[]): string {
  let held = 0;
  for (const stop of stops) {
    for (let length = Math.min(stop.length - 1, text.length); length > held; length--) {
      if (text.endsWith(stop.slice(0, length))) held = length;
    }
  }
  return text.slice(0, text.length - held);
}
