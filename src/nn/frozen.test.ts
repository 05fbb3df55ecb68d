import { readFileSync } from 'node:fs';
import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { ModelProtoSchema } from 'onnx-buf';
import { describe, expect, it } from 'vitest';
import { evaluate, wave } from '../../tests/support/graph.ts';
import { gradients } from './derivative.ts';
import { FROZEN_DTYPES, type FrozenDType, type FrozenMatrix, freeze, frozenSizes, NF4, thaw } from './frozen.ts';
import { input, type Node } from './graph.ts';
import { emit } from './onnx.ts';
import { frozenProduct, reduceSum, square } from './ops.ts';

const golden = JSON.parse(readFileSync(new URL('../../tests/goldens/frozen.json', import.meta.url), 'utf8')) as {
  readonly shape: readonly [number, number];
  readonly matrix: number[];
  readonly int8: { readonly values: number[]; readonly largest: number[] };
  readonly nf4: { readonly values: number[]; readonly largest: number[]; readonly thawed: number[] };
};

describe('freezing a matrix as bitsandbytes does', () => {
  const [, columns] = golden.shape;
  const matrix = Float32Array.from(golden.matrix);

  it('gives its int8 levels, a scale for each row', () => {
    const { values, scales } = freeze('int8', matrix, columns, 'w');
    expect([...values]).toEqual(golden.int8.values);
    scales.forEach((scale, row) => void expect(scale).toBeCloseTo(golden.int8.largest[row]! / 127, 7));
  });

  it('gives its NF4 bytes, a scale for each block, and stands for the same matrix', () => {
    const frozen = freeze('nf4', matrix, columns, 'w');
    // The last block is filled up.
    expect([...frozen.values].slice(0, golden.nf4.values.length)).toEqual(golden.nf4.values);
    expect([...frozen.scales]).toEqual([...Float32Array.from(golden.nf4.largest)]);
    expect([...thaw(frozen, columns, matrix.length)]).toEqual([...Float32Array.from(golden.nf4.thawed)]);
  });
});

it('rounds to the nearest level, whatever the matrix', () => {
  const sizes = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 90 }));
  fc.assert(
    fc.property(sizes, fc.constantFrom(0, 1e-12, 0.3, 1e20), fc.nat(), ([rows, columns], size, phase) => {
      const matrix = wave(rows * columns, phase).map(value => value * size);
      for (const dtype of FROZEN_DTYPES) {
        const frozen = freeze(dtype, matrix, columns, 'w');
        expect(frozenSizes(dtype, rows, columns)).toEqual({
          values: frozen.values.length,
          scales: frozen.scales.length,
        });
        const length = dtype === 'int8' ? columns : 64;
        const levels = dtype === 'int8' ? Array.from({ length: 255 }, (_, i) => (i - 127) / 127) : [...NF4];
        const thawed = thaw(frozen, columns, matrix.length);
        for (const [i, value] of matrix.entries()) {
          const start = length * Math.floor(i / length);
          const largest = matrix
            .subarray(start, start + length)
            .reduce((most, each) => Math.max(most, Math.abs(each)), 0);
          const nearest = Math.min(...levels.map(level => Math.abs(level * largest - value)));
          // To the rounding of float32 numbers as large as the largest.
          expect(Math.abs(thawed[i]! - value)).toBeLessThanOrEqual(nearest + 2e-7 * largest);
        }
      }
    }),
    { numRuns: 60 },
  );
});

it.each(FROZEN_DTYPES)('%s has no level for what is not finite', dtype => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => freeze(dtype, Float32Array.of(1, bad, 3, 4), 2, 'q_proj')).toThrow(
      /q_proj has an element that is not/,
    );
  }
});

/** Blocks inside rows, over rows, and a last one that is short; a matrix smaller than a block. */
const SHAPES = [
  [4, 64],
  [7, 19],
  [3, 5],
  [130, 48],
] as const;

describe.each(FROZEN_DTYPES)('a product with a matrix in %s', dtype => {
  it.each(SHAPES)('is that with what the matrix [%d, %d] stands for, both ways', async (rows, columns) => {
    const frozen = freeze(dtype, wave(rows * columns), columns, 'w');
    const matrix = thaw(frozen, columns, rows * columns);
    const [x, dy] = [wave(3 * columns, 1), wave(3 * rows, 2)];
    const [y, dx] = await products(frozen, rows, columns, x, dy);
    // Float32 sums of up to 130 products of numbers below 1.
    for (let n = 0; n < 3; n++) {
      for (let row = 0; row < rows; row++) {
        let sum = 0;
        for (let i = 0; i < columns; i++) sum += x[n * columns + i]! * matrix[row * columns + i]!;
        expect(Math.abs(y[n * rows + row]! - sum)).toBeLessThan(1e-5);
      }
      for (let i = 0; i < columns; i++) {
        let sum = 0;
        for (let row = 0; row < rows; row++) sum += dy[n * rows + row]! * matrix[row * columns + i]!;
        expect(Math.abs(dx[n * columns + i]! - sum)).toBeLessThan(1e-5);
      }
    }
  });

  it('makes the matrix anew for the way back, so that none is kept in float32', () => {
    const { spec, values, scales } = nodes(dtype, 4, 6);
    const x = input('x', ['N', 6]);
    const y = frozenProduct(x, values, scales, spec);
    const [dx] = gradients(reduceSum(square(y)), [x]);
    const { graph } = fromBinary(ModelProtoSchema, emit({ y, dx: dx! }).bytes);
    const made = graph!.node.filter(({ opType }) => ['DequantizeLinear', 'MatMulBnb4', 'Gather'].includes(opType));
    expect(made.map(({ opType }) => opType)).toEqual(
      dtype === 'int8' ? ['DequantizeLinear', 'DequantizeLinear'] : ['MatMulBnb4', 'Gather'],
    );
  });

  it('refuses another shape and another type', () => {
    const { spec, values, scales } = nodes(dtype, 4, 6);
    expect(() => frozenProduct(input('x', ['N', 5]), values, scales, spec)).toThrow('x is [N,5], the matrix [4, 6]');
    expect(() => frozenProduct(input('x', ['N', 6]), scales, scales, spec)).toThrow(TypeError);
  });
});

function nodes(dtype: FrozenDType, rows: number, columns: number) {
  const sizes = frozenSizes(dtype, rows, columns);
  const values: Node =
    dtype === 'int8' ? input('values', [rows, columns], 'int8') : input('values', [sizes.values], 'uint8');
  return { values, scales: input('scales', [sizes.scales]), spec: { dtype, rows, columns, back: false } };
}

async function products(
  { dtype, ...data }: FrozenMatrix,
  rows: number,
  columns: number,
  x: Float32Array,
  dy: Float32Array,
) {
  const { values, scales, spec } = nodes(dtype, rows, columns);
  const outputs = {
    y: frozenProduct(input('x', ['N', columns]), values, scales, spec),
    dx: frozenProduct(input('dy', ['N', rows]), values, scales, { ...spec, back: true }),
  };
  const result = await evaluate(outputs, { ...data, x, dy }, { N: 3 });
  return [result.y as Float32Array, result.dx as Float32Array] as const;
}
