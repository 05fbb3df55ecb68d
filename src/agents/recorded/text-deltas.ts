import { settled } from '../../text/stop-strings.ts';

const THINK = '<think>';

/**
 * Text of an answer as its tokens arrive. Held back are half characters, text that a stop string may still take away,
 * and reasoning. Each token costs the decoding of a few, not of the whole answer.
 */
export class TextDeltas {
  readonly #decode: (tokens: readonly number[]) => string;
  readonly #stops: readonly string[];
  readonly #give: (text: string) => void;
  readonly #tokens: number[] = [];
  /** Tokens before `#read` are in `#text`; those from `#from` on are decoded again, since text depends on what precedes it. */
  #from = 0;
  #read = 0;
  #text = '';
  #given = 0;
  #ended = false;

  constructor(decode: (tokens: readonly number[]) => string, stops: readonly string[], give: (text: string) => void) {
    this.#decode = decode;
    this.#stops = stops;
    this.#give = give;
  }

  push(token: number): void {
    this.#tokens.push(token);
    const before = this.#decode(this.#tokens.slice(this.#from, this.#read));
    const after = this.#decode(this.#tokens.slice(this.#from));
    if (after.length <= before.length || after.endsWith('\ufffd')) return;
    this.#text += after.slice(before.length);
    this.#from = this.#read;
    this.#read = this.#tokens.length;
    this.#release();
  }

  #release(): void {
    const start = this.#text.trimStart().slice(0, THINK.length);
    if (this.#ended || THINK.startsWith(start)) return;
    const tail = this.#text.slice(this.#given);
    const found = this.#stops.map(stop => tail.indexOf(stop)).filter(at => at >= 0);
    this.#ended = found.length > 0;
    const piece = found.length > 0 ? tail.slice(0, Math.min(...found)) : settled(tail, this.#stops);
    this.#given += piece.length;
    if (piece !== '') this.#give(piece);
  }
}
