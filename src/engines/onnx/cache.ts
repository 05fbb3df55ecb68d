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
  #arrays: readonly Float32Array[];
  /** What `views` gave last, and for what. */
  #views:
    | {
        readonly arrays: readonly Float32Array[];
        readonly length: number;
        readonly first: number;
        readonly count: number;
        readonly views: readonly Float32Array[];
      }
    | undefined;
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

  /**
   * Views of rows [first, first + count), [count, K, L, D] each: keys of layer i at 2i, values at 2i + 1. The same ones
   * as before where nothing moved, so that tensors over them are made once.
   */
  views(first: number, count: number): readonly Float32Array[] {
    const known = this.#views;
    if (
      known?.arrays === this.#arrays &&
      known.length === this.#length &&
      known.first === first &&
      known.count === count
    )
      return known.views;
    const size = this.#rowSize(this.#length);
    const views = this.#arrays.map(array => array.subarray(first * size, (first + count) * size));
    this.#views = { arrays: this.#arrays, length: this.#length, first, count, views };
    return views;
  }

  /**
   * Appends `count` new positions to a row.
   * @param appended [N, 2·layers, K, D]: of each new token the keys and values of every layer
   * @param from the first of the row's own tokens among the N
   */
  append(row: number, appended: Float32Array, from: number, count: number): void {
    const { kvHeads, headDim } = this.#shape;
    const position = this.lengths[row]!;
    const length = this.#length;
    if (position + count > length) throw new Error(`cache row ${row} is full at ${length} tokens`);
    let source = from * this.#arrays.length * kvHeads * headDim;
    for (let at = position; at < position + count; at++) {
      for (const target of this.#arrays) {
        for (let head = 0; head < kvHeads; head++) {
          const to = ((row * kvHeads + head) * length + at) * headDim;
          for (let d = 0; d < headDim; d++) target[to + d] = appended[source++]!;
        }
      }
    }
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
