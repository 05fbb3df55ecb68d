import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Arrays in a temporary file, for the time in which nobody needs them. */
export class PutAway {
  readonly #file: number;

  /** Writes the arrays; they may go once this has returned. Throws when there is no room for them. */
  constructor(arrays: readonly Float32Array[]) {
    const directory = mkdtempSync(join(tmpdir(), 'tokenloop-'));
    try {
      this.#file = openSync(join(directory, 'put-away'), 'w+');
    } finally {
      // An open file needs no name: it goes with the process, however that ends.
      rmSync(directory, { recursive: true, force: true });
    }
    try {
      for (const array of arrays) inChunks(array, (buffer, at, size) => writeSync(this.#file, buffer, at, size));
    } catch (error) {
      this.discard();
      throw error;
    }
  }

  /** Fills arrays of the same lengths with what was written, bit for bit; the file goes. */
  takeBack(arrays: readonly Float32Array[]): void {
    let place = 0;
    for (const array of arrays) {
      inChunks(array, (buffer, at, size) => {
        const read = readSync(this.#file, buffer, at, size, place);
        if (read === 0) throw new Error('the temporary file of the optimizer state ends too early');
        place += read;
        return read;
      });
    }
    this.discard();
  }

  discard(): void {
    closeSync(this.#file);
  }
}

/** One call takes less than 2 GiB. */
const CHUNK = 2 ** 30;

function inChunks(array: Float32Array, transfer: (buffer: Uint8Array, at: number, size: number) => number): void {
  const buffer = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let at = 0; at < buffer.length; ) at += transfer(buffer, at, Math.min(CHUNK, buffer.length - at));
}
