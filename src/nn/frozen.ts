/** Matrices that stay as they are, kept in 8 or 4 bits. What computes with them is `frozenLinear` of ops.ts. */

/**
 * - `int8`: levels −127 … 127, a scale for each row (Dettmers et al., "LLM.int8()", 2022, the vector-wise weights).
 * - `nf4`: the sixteen levels of NormalFloat, a scale for every 64 elements (Dettmers et al., "QLoRA", 2023), without
 *   the second quantisation of the scales.
 */
export const FROZEN_DTYPES = ['int8', 'nf4'] as const;
export type FrozenDType = (typeof FROZEN_DTYPES)[number];

export interface FrozenMatrix {
  readonly dtype: FrozenDType;
  /** int8: one element each. nf4: two elements a byte, the first in the high bits, in row-major order, to whole blocks. */
  readonly values: Int8Array | Uint8Array;
  /** int8: what one level is worth, for each row. nf4: the largest magnitude of each block. */
  readonly scales: Float32Array;
}

/** Elements that share a scale, of nf4; they may lie in two rows. */
export const BLOCK = 64;
const LEVELS = 127;

/** Levels of nf4: QLoRA's appendix E, as float32. */
export const NF4 = Float32Array.of(
  -1,
  -0.6961928009986877,
  -0.5250730514526367,
  -0.39491748809814453,
  -0.28444138169288635,
  -0.18477343022823334,
  -0.09105003625154495,
  0,
  0.07958029955625534,
  0.16093020141124725,
  0.24611230194568634,
  0.33791524171829224,
  0.44070982933044434,
  0.5626170039176941,
  0.7229568362236023,
  1,
);
const BETWEEN = Array.from({ length: 15 }, (_, i) => (NF4[i]! + NF4[i + 1]!) / 2);

/** Number of values and of scales of a matrix [rows, columns]. */
export function frozenSizes(dtype: FrozenDType, rows: number, columns: number): { values: number; scales: number } {
  const size = rows * columns;
  return dtype === 'int8'
    ? { values: size, scales: rows }
    : { values: (BLOCK / 2) * Math.ceil(size / BLOCK), scales: Math.ceil(size / BLOCK) };
}

/**
 * @param matrix [rows, columns]
 * @param name starts the error about an element that is not finite, for which there is no level
 */
export function freeze(dtype: FrozenDType, matrix: Float32Array, columns: number, name: string): FrozenMatrix {
  const sizes = frozenSizes(dtype, matrix.length / columns, columns);
  const scales = new Float32Array(sizes.scales);
  const length = dtype === 'int8' ? columns : BLOCK;
  const values = new { int8: Int8Array, nf4: Uint8Array }[dtype](sizes.values);
  const write = dtype === 'int8' ? freezeRow : freezeBlock;
  for (let i = 0; i < sizes.scales; i++) {
    const start = i * length;
    const end = Math.min(start + length, matrix.length);
    let [largest, sum] = [0, 0];
    for (let j = start; j < end; j++) {
      const magnitude = Math.abs(matrix[j]!);
      if (magnitude > largest) largest = magnitude;
      sum += magnitude;
    }
    if (!Number.isFinite(sum)) {
      throw new Error(
        `${name} has an element that is not finite, which ${dtype} has no level for; repair the checkpoint`,
      );
    }
    scales[i] = dtype === 'int8' ? largest / LEVELS : largest;
    if (largest > 0) write(values, matrix, start, end, largest);
    else if (dtype === 'nf4') write(values, matrix, start, end, 1);
  }
  return { dtype, values, scales };
}

type Write = (
  values: Int8Array | Uint8Array,
  matrix: Float32Array,
  start: number,
  end: number,
  largest: number,
) => void;

const freezeRow: Write = (values, matrix, start, end, largest) => {
  const levels = LEVELS / largest;
  // Adding and taking away 1.5 · 2⁵² rounds to the nearest integer, ties to the even one.
  for (let j = start; j < end; j++) values[j] = matrix[j]! * levels + 6755399441055744 - 6755399441055744;
};

const freezeBlock: Write = (values, matrix, start, end, largest) => {
  for (let j = start; j < end; j++) {
    const share = matrix[j]! / largest;
    let level = share > BETWEEN[7]! ? 8 : 0;
    if (share > BETWEEN[level + 3]!) level += 4;
    if (share > BETWEEN[level + 1]!) level += 2;
    if (share > BETWEEN[level]!) level += 1;
    values[j >> 1]! |= j % 2 === 0 ? level << 4 : level;
  }
};

/** [rows · columns]: what the matrix stands for, as computed with. */
export function thaw({ dtype, values, scales }: FrozenMatrix, columns: number, size: number): Float32Array {
  const matrix = new Float32Array(size);
  if (dtype === 'int8') for (let j = 0; j < size; j++) matrix[j] = values[j]! * scales[Math.floor(j / columns)]!;
  else {
    for (let j = 0; j < size; j++) {
      const byte = values[j >> 1]!;
      matrix[j] = NF4[j % 2 === 0 ? byte >> 4 : byte & 15]! * scales[Math.floor(j / BLOCK)]!;
    }
  }
  return matrix;
}
