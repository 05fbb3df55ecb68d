import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { explainDiskError } from '../storage/atomic.ts';

/** Bytes that are read by their place. */
export interface Bytes {
  read(start: number, length: number): Buffer;
}

/** A file that stays what it was: reading throws once it has been changed. Holds it open only while it reads. */
export function fileBytes(path: string): Bytes {
  const stamp = (fd: number) => {
    const { size, mtimeMs } = fstatSync(fd);
    return `${size} ${mtimeMs}`;
  };
  const withFile = <T>(use: (fd: number) => T): T => {
    const fd = openSync(path, 'r');
    try {
      return use(fd);
    } finally {
      closeSync(fd);
    }
  };
  const before = withFile(stamp);
  return {
    read: (start, length) =>
      withFile(fd => {
        if (stamp(fd) === before) return readAt(fd, start, length);
        throw new Error(`${path} was changed while it was in use; start again, or resume with the file as it was`);
      }),
  };
}

const MEMORY_BYTES = 64e6;

/** Rows that stand in no file as JSON: in memory while they are few, then in a temporary file without a name. */
export class Spool implements Bytes {
  readonly #memoryBytes: number;
  #chunks: Buffer[] = [];
  #memory: Buffer | undefined;
  #fd: number | undefined;
  #waiting = 0;
  /** Bytes in the file. */
  #written = 0;

  constructor(memoryBytes: number = MEMORY_BYTES) {
    this.#memoryBytes = memoryBytes;
  }

  /** Where `bytes` begin. */
  append(bytes: Buffer): number {
    const start = this.#written + this.#waiting;
    this.#chunks.push(bytes);
    this.#memory = undefined;
    this.#waiting += bytes.length;
    if (this.#waiting > this.#memoryBytes) this.#flush();
    return start;
  }

  read(start: number, length: number): Buffer {
    if (start < this.#written) return readAt(this.#fd!, start, length);
    this.#memory ??= Buffer.concat(this.#chunks);
    this.#chunks = [this.#memory];
    return this.#memory.subarray(start - this.#written, start - this.#written + length);
  }

  #flush(): void {
    this.#fd ??= temporaryFile();
    const bytes = Buffer.concat(this.#chunks);
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(this.#fd, bytes, at, bytes.length - at, this.#written + at);
      } catch (error) {
        throw explainDiskError(tmpdir(), error);
      }
    }
    this.#written += bytes.length;
    [this.#chunks, this.#waiting] = [[], 0];
  }
}

/** Gone with the process, since nothing but its descriptor is left. */
function temporaryFile(): number {
  const directory = mkdtempSync(join(tmpdir(), 'tokenloop-rows-'));
  const fd = openSync(join(directory, 'rows'), 'wx+');
  rmSync(directory, { recursive: true });
  return fd;
}

function readAt(fd: number, start: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let have = 0; have < length; ) {
    const count = readSync(fd, bytes, have, length - have, start + have);
    if (count === 0) throw new Error(`a dataset ends at byte ${start + have}, inside of a row`);
    have += count;
  }
  return bytes;
}

/** Where the rows stand: 16 bytes of memory a row. */
export class RowIndex {
  #starts = new Float64Array(1024);
  #lengths = new Uint32Array(1024);
  #numbers = new Uint32Array(1024);
  #length = 0;

  add(start: number, length: number, number: number): void {
    if (this.#length === this.#starts.length) {
      this.#starts = grown(this.#starts, new Float64Array(2 * this.#length));
      this.#lengths = grown(this.#lengths, new Uint32Array(2 * this.#length));
      this.#numbers = grown(this.#numbers, new Uint32Array(2 * this.#length));
    }
    this.#starts[this.#length] = start;
    this.#lengths[this.#length] = length;
    this.#numbers[this.#length] = number;
    this.#length += 1;
  }

  get length(): number {
    return this.#length;
  }

  at(index: number): { readonly start: number; readonly length: number; readonly number: number } {
    return { start: this.#starts[index]!, length: this.#lengths[index]!, number: this.#numbers[index]! };
  }
}

function grown<T extends Float64Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
