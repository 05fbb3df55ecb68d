import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { valuesOf, wave } from '../../tests/support/graph.ts';
import { gradients } from './derivative.ts';
import { constant, type Node, type Shape } from './graph.ts';
import { drawTokens } from './models/draw.ts';
import * as ops from './ops.ts';
import * as runtime from './runtime-ops.ts';

const tensor = (shape: readonly number[], seed = 0): Node =>
  constant(
    wave(
      shape.reduce((product, dim) => product * dim, 1),
      seed,
    ),
    shape,
  );

/** The runtime's fused kernels differ in the last places of exp and in the order of sums. */
const CLOSE = 2e-6;

async function expectEqual(fused: Node, composed: Node): Promise<void> {
  const [found, expected] = [await valuesOf(fused), await valuesOf(composed)];
  expect(fused.shape).toEqual(composed.shape);
  expect(found).toHaveLength(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs(found[i]! - value)).toBeLessThan(CLOSE);
}

describe('operators of the runtime compute what the composed ones do', () => {
  const x = tensor([3, 8]);
  const y = tensor([3, 8], 5);
  const weight = tensor([8], 9);

  it('norms', async () => {
    await expectEqual(runtime.normalize(x, weight, 1e-5), ops.rmsNorm(x, weight, 1e-5));
    const four = tensor([2, 3, 4, 8], 3);
    await expectEqual(runtime.normalize(four, weight, 0.1), ops.rmsNorm(four, weight, 0.1));
    const { sum, normed } = runtime.addNormalize(x, y, weight, 1e-5);
    await expectEqual(sum, ops.add(x, y));
    await expectEqual(normed, ops.rmsNorm(ops.add(x, y), weight, 1e-5));
  });

  it('activations', async () => {
    const wide = ops.mul(x, constant(Float32Array.of(6), []));
    await expectEqual(runtime.fusedSilu(wide), ops.silu(wide));
    await expectEqual(runtime.fusedGeluTanh(wide), ops.geluTanh(wide));
  });

  it('splits and blocks', async () => {
    const [a, b, c] = runtime.splitLast(x, [1, 5, 2]);
    await expectEqual(a!, ops.slice(x, 1, 0, 1));
    await expectEqual(b!, ops.slice(x, 1, 1, 6));
    await expectEqual(c!, ops.slice(x, 1, 6, 8));
    const blocks = tensor([3, 4, 2], 2);
    const chosen = runtime.gatherBlock(blocks, constant(BigInt64Array.of(2n, 0n, 3n), [3]));
    const rows = ops.reshape(blocks, [12, 2]);
    await expectEqual(chosen, ops.gatherRows(rows, constant(BigInt64Array.of(2n, 4n, 11n), [3])));
  });

  it('scores', async () => {
    const [q, k] = [tensor([2, 3, 4, 8]), tensor([2, 3, 5, 8], 4)];
    const half = constant(Float32Array.of(0.5), []);
    await expectEqual(runtime.scaledScores(q, k, 0.5), ops.mul(ops.matmul(q, ops.transpose(k, [0, 1, 3, 2])), half));
  });

  it('refuses shapes that do not fit', () => {
    expect(() => runtime.splitLast(x, [3, 4])).toThrow('[3,4] do not add up to [3,8]');
    expect(() => runtime.normalize(x, tensor([7]), 1e-5)).toThrow('the weight is [7], x [3,8]');
    expect(() => runtime.scaledScores(x, tensor([3, 7]), 1)).toThrow('[3,8] x [3,7] transposed');
    expect(() => runtime.gatherBlock(tensor([3, 4, 2]), constant(BigInt64Array.of(0n), [1]))).toThrow('the index [1]');
    const matrix = runtime.quantizeWeights(tensor([4, 7]));
    expect(() => runtime.quantizedLinear(x, matrix)).toThrow('x is [3,8], values [7,4], scales [4]');
    const tables = { cos: tensor([4, 4]), sin: tensor([4, 4]) };
    const positions = constant(new BigInt64Array(3), [3, 1]);
    expect(() => runtime.rotaryEmbedding(tensor([3, 1, 8]), positions, tables, { heads: 2, headDim: 8 })).toThrow(
      'x is [3,1,8], positions [3,1], 2 heads of 8',
    );
  });

  it('has no derivative, and says so', () => {
    expect(() => gradients(ops.reduceSum(runtime.fusedSilu(x)), [x])).toThrow(
      "the runtime's QuickGelu is written for sampling and has no derivative here",
    );
  });
});

/** Rounds half to even, as IEEE 754 does. */
function roundEven(x: number): number {
  const low = Math.floor(x);
  const rest = x - low;
  return rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
}

/** Levels and scale of one row by the definition. */
function quantizedRow(row: readonly number[]): { levels: number[]; scale: number } {
  const largest = Math.max(...row.map(Math.abs));
  const level = (value: number) => roundEven(Math.fround(Math.fround(value / largest) / Math.fround(1 / 127)));
  return {
    levels: row.map(value => (largest === 0 ? 0 : level(value))),
    scale: Math.fround(largest * Math.fround(1 / 127)),
  };
}

/** Magnitudes between 2⁻¹⁰ and 30. */
const entry = fc.float({ noNaN: true, min: -30, max: 30 }).map(value => (Math.abs(value) < 2 ** -10 ? 0 : value));

const matrix = (rows: number, columns: number) =>
  fc.array(
    fc.array(fc.oneof({ weight: 9, arbitrary: entry }, fc.constant(0)), {
      minLength: columns,
      maxLength: columns,
    }),
    { minLength: rows, maxLength: rows },
  );
const flat = (rows: readonly (readonly number[])[]) => constant(Float32Array.from(rows.flat()), shapeOf(rows));
const shapeOf = (rows: readonly (readonly number[])[]): Shape => [rows.length, rows[0]!.length];

describe('8-bit products', () => {
  const sizes = fc.record({
    n: fc.integer({ min: 1, max: 5 }),
    k: fc.integer({ min: 1, max: 70 }),
    m: fc.integer({ min: 1, max: 20 }),
  });
  const cases = sizes.chain(({ n, k, m }) => fc.record({ x: matrix(n, k), w: matrix(m, k) }));

  it('are the exact integer products of what rows are rounded to', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ x, w }) => {
        const found = await valuesOf(runtime.quantizedLinear(flat(x), runtime.quantizeWeights(flat(w))));
        const [rows, columns] = [x.map(quantizedRow), w.map(quantizedRow)];
        for (const [i, row] of rows.entries()) {
          for (const [j, column] of columns.entries()) {
            const product = row.levels.reduce((sum, level, p) => sum + level * column.levels[p]!, 0);
            const expected = product * row.scale * column.scale;
            // Two roundings of float32 scales.
            expect(Math.abs(found[i * w.length + j]! - expected)).toBeLessThanOrEqual(1e-6 * Math.abs(expected));
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('round weights to 127 levels a side of each output, ties to even', async () => {
    const { values, scales } = runtime.quantizeWeights(
      flat([
        [127, 0.5, 1.5, -2.5],
        [0, 0, 0, 0],
        [-1, 1, 0.25, 0],
      ]),
    );
    const [levels, worth] = [await valuesOf(ops.cast(values, 'float32')), await valuesOf(scales)];
    // [in, out]; the levels of zeros are worth nothing, whatever they are.
    const column = (j: number) => [0, 1, 2, 3].map(i => levels[3 * i + j]);
    expect(column(0)).toEqual([127, 0, 2, -2]);
    expect(column(2)).toEqual([-127, 127, 32, 0]);
    expect([...worth]).toEqual([1, 0, 1 / 127].map(Math.fround));
  });

  it('give a row the same whatever rows are beside it', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ x, w }) => {
        const weights = runtime.quantizeWeights(flat(w));
        const together = await valuesOf(runtime.quantizedLinear(flat(x), weights));
        const alone = await valuesOf(runtime.quantizedLinear(flat([x.at(-1)!]), weights));
        expect(together.slice(-w.length)).toEqual(alone);
      }),
      { numRuns: 30 },
    );
  });
});

describe('draws', () => {
  // One vocabulary below the size where blocks begin, one of blocks, one that no block size divides.
  it.each([40, 1280, 1201])('invert the cumulative distribution over %d tokens', async V => {
    const uniforms = [0, 0.1, 0.25, 0.5, 0.75, 0.999, 1 - 2 ** -23, 0.3];
    const rows = uniforms.map((_, i) => Array.from(wave(V, 7 * i), value => 4 * value));
    // A row with probability on two tokens only, far apart, and one that is drawn greedily.
    rows[3] = rows[3]!.map((_, t) => (t === 3 || t === V - 2 ? 5 : -1e4));
    const greedy = uniforms.map((_, i) => i === 7);
    const draw = {
      uniform: constant(Float32Array.from(uniforms), [8, 1]),
      greedy: ops.greater(constant(Float32Array.from(greedy, Number), [8, 1]), constant(Float32Array.of(0.5), [])),
    };
    const logits = constant(Float32Array.from(rows.flat()), [8, V]);
    const { token, logprob } = drawTokens(logits, draw);
    const tokens = await valuesOf(ops.cast(token, 'float32'));
    const logprobs = await valuesOf(logprob);
    for (const [i, row] of rows.entries()) {
      const highest = Math.max(...row);
      const weights = row.map(logit => Math.exp(logit - highest));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      const drawn = tokens[i]!;
      if (greedy[i]) {
        expect(drawn).toBe(row.indexOf(highest));
      } else {
        // Float32 sums of V terms: the bound between two tokens is known to about 1e-6.
        const below = weights.slice(0, drawn).reduce((sum, weight) => sum + weight, 0) / total;
        expect(below).toBeLessThanOrEqual(uniforms[i]! + 2e-6);
        expect(below + weights[drawn]! / total).toBeGreaterThan(uniforms[i]! - 2e-6);
      }
      expect(logprobs[i]).toBeCloseTo(row[drawn]! - highest - Math.log(total), 5);
    }
  });
});
