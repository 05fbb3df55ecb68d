import type { Readable } from 'node:stream';

/** The end of what a child process says on stderr, for the message of an error. */
export class Tail {
  readonly #limit: number;
  #text = '';

  constructor(limit = 2000) {
    this.#limit = limit;
  }

  /** Keeps the end of a stream. It is read to its end, so that the child never waits for a reader. */
  follow(stream: Readable): void {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      this.#text = (this.#text + chunk).slice(-this.#limit);
    });
  }

  /** `; it said: …`, empty when it said nothing. */
  toString(): string {
    const text = this.#text.trim();
    return text === '' ? '' : `; it said on stderr: ${text}`;
  }
}
