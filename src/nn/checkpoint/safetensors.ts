import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { DTYPE_BYTES, decode16, encodeBFloat16 } from './dtypes.ts';
import { type Header, METADATA, parseHeader, type TensorInfo } from './header.ts';

/** Largest single read or write: bounds the extra memory of 16-bit tensors and stays below the system's limit. */
const CHUNK_BYTES = 4 << 20;
const LENGTH_BYTES = 8;
/** The format's own bound. */
const MAX_HEADER_BYTES = 100_000_000;

/** An open safetensors file. Tensors are read one at a time, straight from the file. */
export class SafetensorsFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly #descriptor: number;
  readonly #dataStart: number;

  /** Opens the file and checks its whole header. Throws naming the file, the tensor and what is wrong with it. */
  constructor(path: string) {
    this.path = path;
    this.#descriptor = openSync(path, 'r');
    try {
      const { tensors, metadata, dataStart } = this.#readHeader();
      this.tensors = new Map(tensors.map(tensor => [tensor.name, tensor]));
      this.metadata = metadata;
      this.#dataStart = dataStart;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The tensor as float32, into `into` (of exactly its size, in elements) or a new array. */
  readTensor(name: string, into?: Float32Array): Float32Array {
    const tensor = this.tensors.get(name);
    if (tensor === undefined) throw new Error(`${this.path}: no tensor ${JSON.stringify(name)}`);
    const { dtype, start, end } = tensor;
    const size = (end - start) / DTYPE_BYTES[dtype];
    const values = into ?? new Float32Array(size);
    if (values.length !== size) {
      throw new Error(
        `${this.path}: tensor ${JSON.stringify(name)} has ${size} elements, the array given ${values.length}`,
      );
    }
    if (dtype === 'F32') {
      this.#read(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), this.#dataStart + start);
      return values;
    }
    const bits = new Uint16Array(Math.min(size, CHUNK_BYTES / 2));
    for (let i = 0; i < size; i += bits.length) {
      const part = bits.subarray(0, Math.min(bits.length, size - i));
      this.#read(new Uint8Array(part.buffer, 0, part.byteLength), this.#dataStart + start + 2 * i);
      decode16(dtype, part, values.subarray(i, i + part.length));
    }
    return values;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** The checked header, and the position of the byte after it. */
  #readHeader(): Header & { readonly dataStart: number } {
    const fileBytes = fstatSync(this.#descriptor).size;
    const prefix = new Uint8Array(LENGTH_BYTES);
    this.#read(prefix, 0);
    const headerBytes = Number(new DataView(prefix.buffer).getBigUint64(0, true));
    const dataStart = LENGTH_BYTES + headerBytes;
    if (headerBytes > MAX_HEADER_BYTES || dataStart > fileBytes) {
      throw new Error(
        `${this.path}: the header claims ${headerBytes} bytes of a file of ${fileBytes} (and of at most ${MAX_HEADER_BYTES}); this is not a whole safetensors file: fetch or write it again`,
      );
    }
    const header = new Uint8Array(headerBytes);
    this.#read(header, LENGTH_BYTES);
    return { ...parseHeader(header, this.path, fileBytes - dataStart), dataStart };
  }

  #read(into: Uint8Array, position: number): void {
    let done = 0;
    while (done < into.length) {
      const count = readSync(this.#descriptor, into, done, Math.min(CHUNK_BYTES, into.length - done), position + done);
      if (count === 0) {
        throw new Error(
          `${this.path}: ends at byte ${position + done}, ${into.length - done} bytes early; fetch it again`,
        );
      }
      done += count;
    }
  }
}

/** A tensor to be written; `data` holds as many elements as `shape` asks for. */
export interface TensorData {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** A tensor whose data may be made only when its turn comes, so that not all need be in memory. */
export type LazyTensor = Omit<TensorData, 'data'> & { readonly data: Float32Array | (() => Float32Array) };

/**
 * Writes tensors in the order given, as F32 (exact) or BF16 (rounded to nearest even). The file is not replaced
 * atomically: write inside `writeDirectoryAtomic`.
 */
export async function writeSafetensors(
  path: string,
  tensors: readonly LazyTensor[],
  options: { dtype?: 'F32' | 'BF16'; metadata?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const dtype = options.dtype ?? 'F32';
  const entries = new Map<string, unknown>([[METADATA, options.metadata ?? {}]]);
  let end = 0;
  for (const { name, shape, data } of tensors) {
    const size = sizeOf(shape);
    if (typeof data !== 'function') checkSize(name, shape, data);
    if (entries.has(name)) throw new Error(`${path}: the tensor name ${JSON.stringify(name)} is taken already`);
    const start = end;
    end += size * DTYPE_BYTES[dtype];
    entries.set(name, { dtype, shape, data_offsets: [start, end] });
  }
  const file = await open(path, 'w');
  try {
    await writeAll(file, encodeHeader(entries));
    for (const { name, shape, data: given } of tensors) {
      const data = typeof given === 'function' ? checkSize(name, shape, given()) : given;
      for (let i = 0; i < data.length; i += CHUNK_BYTES / 4) {
        const part = data.subarray(i, i + CHUNK_BYTES / 4);
        const encoded = dtype === 'BF16' ? encodeBFloat16(part) : part;
        await writeAll(file, new Uint8Array(encoded.buffer, encoded.byteOffset, encoded.byteLength));
      }
    }
  } finally {
    await file.close();
  }
}

const sizeOf = (shape: readonly number[]) => shape.reduce((product, n) => product * n, 1);

function checkSize(name: string, shape: readonly number[], data: Float32Array): Float32Array {
  const size = sizeOf(shape);
  if (data.length === size) return data;
  throw new Error(`tensor ${JSON.stringify(name)} of shape [${shape}] needs ${size} elements, got ${data.length}`);
}

/** Header length, then the header padded with spaces so that the data starts at a multiple of 8. */
function encodeHeader(entries: ReadonlyMap<string, unknown>): Uint8Array {
  const json = `{${[...entries].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`;
  const text = new TextEncoder().encode(json);
  const bytes = new Uint8Array(LENGTH_BYTES + Math.ceil(text.length / 8) * 8).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(bytes.length - LENGTH_BYTES), true);
  bytes.set(text, LENGTH_BYTES);
  return bytes;
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, bytes: Uint8Array): Promise<void> {
  let done = 0;
  while (done < bytes.length) done += (await file.write(bytes, done)).bytesWritten;
}
