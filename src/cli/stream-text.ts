/**
 * Turns tokens into text as they arrive. A token may hold half a character, so text is given out only up to the last
 * whole one; `finish` gives out the rest as it is.
 */
export class TextStream {
  readonly #decode: (tokens: readonly number[]) => string;
  readonly #write: (text: string) => void;
  readonly #tokens: number[] = [];
  #given = '';

  constructor(decode: (tokens: readonly number[]) => string, write: (text: string) => void) {
    this.#decode = decode;
    this.#write = write;
  }

  push(token: number): void {
    this.#tokens.push(token);
    this.#give(this.#decode(this.#tokens).replace(/\ufffd+$/, ''));
  }

  finish(): void {
    this.#give(this.#decode(this.#tokens));
  }

  #give(text: string): void {
    // A tokenizer that rewrites what it decoded before (joined accents, say) is waited for.
    if (text.length <= this.#given.length || !text.startsWith(this.#given)) return;
    this.#write(text.slice(this.#given.length));
    this.#given = text;
  }
}
