import type { DecoderConfig } from '../../nn/models/families.ts';

/**
 * The key/value cache of the rows being decoded: per layer one array [capacity, K, L, D] for keys and one for values.
 * The first `rows` rows are in use, so a prefix of each array is what the graph reads. Rows that finish are replaced
 * by the last one; the length L grows when a row needs it.
 */

type CacheShape = Pick<DecoderConfig, 'layers' | 'kvHeads' | 'headDim'>;

/** Keys and values of one sequence, [layers, 2, K, length, D], outside the cache. */
export interface CachedSequence {
  readonly data: Float32Array;
  readonly length: number;
}

/** Cache lengths are multiples of this, so that growing is rare. */
const LENGTH_STEP = 32;

export class KeyValueCache {
  rows = 0;
  readonly #shape: CacheShape;
  #capacity = 0;
  #length = LENGTH_STEP;
  /** Keys of layer i at 2i, values at 2i + 1. */
  #arrays: Float32Array[];
  /** [capacity] tokens cached for each row. */
  readonly lengths: number[] = [];

  constructor(shape: CacheShape) {
    this.#shape = shape;
    this.#arrays = Array.from({ length: 2 * shape.layers }, () => new Float32Array(0));
  }

  /** L: the length every row is stored with. */
  get length(): number {
    return this.#length;
  }

  get bytes(): number {
    return this.#arrays.reduce((sum, array) => sum + array.byteLength, 0);
  }

  /** Adds an empty row and returns its index. */
  addRow(): number {
    this.#reserve(this.rows + 1, this.#length);
    this.lengths[this.rows] = 0;
    return this.rows++;
  }

  /** Frees `row` by moving the last row into its place. Returns the index of the row that moved. */
  removeRow(row: number): number {
    const last = this.rows - 1;
    const size = this.#rowSize(this.#length);
    if (row !== last) {
      for (const array of this.#arrays) array.copyWithin(row * size, last * size, (last + 1) * size);
      this.lengths[row] = this.lengths[last]!;
    }
    this.rows = last;
    if (this.rows === 0) this.#length = LENGTH_STEP;
    return last;
  }

  /** Makes room for rows of `length` tokens. */
  reserveLength(length: number): void {
    this.reserve(this.rows, length);
  }

  /** Makes room for `rows` rows, in use or not, of `length` tokens. */
  reserve(rows: number, length: number): void {
    this.#reserve(rows, Math.max(this.#length, Math.ceil(length / LENGTH_STEP) * LENGTH_STEP));
  }

  /** View of rows [first, first + count), keys or values of one layer: [count, K, L, D]. */
  view(layer: number, part: 'key' | 'value', first: number, count: number): Float32Array {
    const size = this.#rowSize(this.#length);
    return this.#arrays[2 * layer + (part === 'key' ? 0 : 1)]!.subarray(first * size, (first + count) * size);
  }

  /**
   * Appends one new position to each of `count` rows from `first` on.
   * @param chunks keys of layer i at 2i and values at 2i + 1, each [≥ count, K, 1, D]
   */
  appendOne(first: number, count: number, chunks: readonly Float32Array[]): void {
    const { kvHeads, headDim } = this.#shape;
    const { lengths } = this;
    const length = this.#length;
    for (let row = first; row < first + count; row++) this.#requireRoom(row, 1);
    for (const [index, source] of chunks.entries()) {
      const target = this.#arrays[index]!;
      let from = 0;
      for (let row = first; row < first + count; row++) {
        for (let head = 0; head < kvHeads; head++) {
          const to = ((row * kvHeads + head) * length + lengths[row]!) * headDim;
          for (let d = 0; d < headDim; d++) target[to + d] = source[from++]!;
        }
      }
    }
    for (let row = first; row < first + count; row++) lengths[row]! += 1;
  }

  /**
   * Appends the first `count` of C new positions of chunk row `from` to `row`.
   * @param chunks keys of layer i at 2i and values at 2i + 1, each [B, K, C, D]
   */
  append(row: number, chunks: readonly Float32Array[], from: number, chunk: number, count: number): void {
    const { kvHeads, headDim } = this.#shape;
    const position = this.lengths[row]!;
    this.#requireRoom(row, count);
    chunks.forEach((source, index) => {
      const target = this.#arrays[index]!;
      for (let head = 0; head < kvHeads; head++) {
        const start = (from * kvHeads + head) * chunk * headDim;
        const to = ((row * kvHeads + head) * this.#length + position) * headDim;
        target.set(source.subarray(start, start + count * headDim), to);
      }
    });
    this.lengths[row] = position + count;
  }

  /** Copies the first `length` positions of a row out of the cache. */
  extract(row: number, length: number): CachedSequence {
    const { kvHeads, headDim } = this.#shape;
    const run = length * headDim;
    const data = new Float32Array(this.#arrays.length * kvHeads * run);
    this.#arrays.forEach((array, index) => {
      for (let head = 0; head < kvHeads; head++) {
        const start = (row * kvHeads + head) * this.#length * headDim;
        data.set(array.subarray(start, start + run), (index * kvHeads + head) * run);
      }
    });
    return { data, length };
  }

  /** Puts the first `length` positions of a stored sequence into an empty row. */
  insert(row: number, sequence: CachedSequence, length = sequence.length): void {
    const { kvHeads, headDim } = this.#shape;
    this.reserveLength(length);
    const run = sequence.length * headDim;
    this.#arrays.forEach((array, index) => {
      for (let head = 0; head < kvHeads; head++) {
        const start = (index * kvHeads + head) * run;
        const to = (row * kvHeads + head) * this.#length * headDim;
        array.set(sequence.data.subarray(start, start + length * headDim), to);
      }
    });
    this.lengths[row] = length;
  }

  /** Drops all rows and gives the memory back. */
  clear(): void {
    this.rows = 0;
    this.#capacity = 0;
    this.#length = LENGTH_STEP;
    this.#arrays = this.#arrays.map(() => new Float32Array(0));
  }

  #requireRoom(row: number, count: number): void {
    if (this.lengths[row]! + count > this.#length) {
      throw new Error(`cache row ${row} is full at ${this.#length} tokens`);
    }
  }

  #rowSize(length: number): number {
    return this.#shape.kvHeads * length * this.#shape.headDim;
  }

  #reserve(rows: number, length: number): void {
    if (rows <= this.#capacity && length <= this.#length && this.#capacity > 0) return;
    const capacity =
      rows <= this.#capacity ? this.#capacity : Math.max(rows, Math.min(2 * this.#capacity, this.#capacity + 64));
    const target = Math.max(length, this.#length);
    const { kvHeads, headDim } = this.#shape;
    this.#arrays = this.#arrays.map(old => {
      const grown = new Float32Array(capacity * this.#rowSize(target));
      for (let run = 0; run < this.rows * kvHeads; run++) {
        const used = this.lengths[Math.floor(run / kvHeads)]! * headDim;
        const start = run * this.#length * headDim;
        grown.set(old.subarray(start, start + used), run * target * headDim);
      }
      return grown;
    });
    this.#capacity = capacity;
    this.#length = target;
  }
}
