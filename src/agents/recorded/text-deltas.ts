import { settled } from '../../text/stop-strings.ts';

const THINK = '<think>';

/**
 * Text of an answer as its tokens arrive. Held back are half characters, text that a stop string may still take away,
 * reasoning, and what a call may begin with. Each token costs the decoding of a few, not of the whole answer.
 */
export class TextDeltas {
  readonly #decode: (tokens: readonly number[]) => string;
  readonly #stops: readonly string[];
  readonly #give: (text: string) => void;
  readonly #trims: boolean;
  readonly #tokens: number[] = [];
  /** Tokens before `#read` are in `#text`; those from `#from` on are decoded again, since text depends on what precedes it. */
  #from = 0;
  #read = 0;
  #text = '';
  #given = 0;
  #ended = false;

  /** `marks` are what a call begins with, in answers that may have calls: white space at the ends of these is not said. */
  constructor(
    decode: (tokens: readonly number[]) => string,
    stops: readonly string[],
    give: (text: string) => void,
    marks?: readonly string[],
  ) {
    this.#decode = decode;
    this.#stops = [...stops, ...(marks ?? [])];
    this.#give = give;
    this.#trims = marks !== undefined;
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
    if (this.#trims && this.#given === 0) this.#given = this.#text.length - this.#text.trimStart().length;
    const tail = this.#text.slice(this.#given);
    const found = this.#stops.map(stop => tail.indexOf(stop)).filter(at => at >= 0);
    this.#ended = found.length > 0;
    const ready = found.length > 0 ? tail.slice(0, Math.min(...found)) : settled(tail, this.#stops);
    const piece = this.#trims ? ready.trimEnd() : ready;
    this.#given += piece.length;
    if (piece !== '') this.#give(piece);
  }
}
