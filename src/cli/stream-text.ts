import { cutAtStop, settled } from '../text/stop-strings.ts';

/**
 * Turns tokens into text as they arrive. A token may hold half a character, so text is given out only up to the last
 * whole one, and up to where a stop string may have begun; `finish` gives out the rest.
 */
export class TextStream {
  readonly #decode: (tokens: readonly number[]) => string;
  readonly #write: (text: string) => void;
  readonly #stops: readonly string[];
  readonly #tokens: number[] = [];
  #given = '';

  constructor(
    decode: (tokens: readonly number[]) => string,
    write: (text: string) => void,
    stops: readonly string[] = [],
  ) {
    this.#decode = decode;
    this.#write = write;
    this.#stops = stops;
  }

  push(token: number): void {
    this.#tokens.push(token);
    const text = this.#decode(this.#tokens).replace(/\ufffd+$/, '');
    const found = this.#stops.map(stop => text.indexOf(stop)).filter(at => at >= 0);
    this.#give(settled(found.length > 0 ? text.slice(0, Math.min(...found)) : text, this.#stops));
  }

  /** @param stop the stop string that ended the text, which is given out if `include` says so */
  finish(stop?: string, include = false): void {
    this.#give(cutAtStop(this.#decode(this.#tokens), stop, include));
  }

  #give(text: string): void {
    // A tokenizer that rewrites what it decoded before (joined accents, say) is waited for.
    if (text.length <= this.#given.length || !text.startsWith(this.#given)) return;
    this.#write(text.slice(this.#given.length));
    this.#given = text;
  }
}
