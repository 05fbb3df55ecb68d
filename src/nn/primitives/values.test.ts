import { describe, expect, it } from 'vitest';
import { evaluate, floats, ints, valuesOf, wave } from '../../../tests/support/graph.ts';
import { constant, input, type Node, PRIMITIVES, type PrimitiveName, scalar } from '../graph.ts';
import * as ops from '../ops.ts';

const x = constant(floats(-2, 0, 0.5, 3), [4]);
const y = constant(floats(1, 0, -0.5, 3), [4]);
const p = constant(floats(0.25, 1, 4, 16), [4]);
const grid = constant(floats(1, 2, 3, 4, 5, 6), [2, 3]);
const yes = ops.less(x, scalar(0.25));
const flag = (node: Node) => ops.cast(node, 'float32');
const e = Math.exp;

/** Node and its values, worked out by hand. */
const VALUES: Readonly<Record<PrimitiveName, readonly (readonly [Node, readonly number[]])[]>> = {
  input: [],
  constant: [[x, [-2, 0, 0.5, 3]]],
  dimension: [[ops.dimension('4*B+1'), [9]]],
  add: [[ops.add(x, y), [-1, 0, 0, 6]]],
  sub: [[ops.sub(x, y), [-3, 0, 1, 0]]],
  mul: [[ops.mul(x, y), [-2, 0, -0.25, 9]]],
  div: [[ops.div(x, p), [-8, 0, 0.125, 0.1875]]],
  min: [[ops.min(x, y), [-2, 0, -0.5, 3]]],
  max: [[ops.max(x, y), [1, 0, 0.5, 3]]],
  less: [[flag(ops.less(x, y)), [1, 0, 0, 0]]],
  lessEqual: [[flag(ops.lessEqual(x, y)), [1, 1, 0, 1]]],
  greater: [[flag(ops.greater(x, y)), [0, 0, 1, 0]]],
  equal: [[flag(ops.equal(x, y)), [0, 1, 0, 1]]],
  and: [[flag(ops.and(yes, ops.equal(x, y))), [0, 1, 0, 0]]],
  or: [[flag(ops.or(yes, ops.equal(x, y))), [1, 1, 0, 1]]],
  not: [[flag(ops.not(yes)), [0, 0, 1, 1]]],
  where: [
    [ops.where(yes, x, ops.log(x)), [-2, 0, Math.log(0.5), Math.log(3)]],
    [ops.where(yes, constant(ints(7), []), constant(ints(1, 2, 3, 4), [4])), [7, 7, 3, 4]],
  ],
  neg: [[ops.neg(x), [2, -0, -0.5, -3]]],
  exp: [[ops.exp(x), [e(-2), 1, e(0.5), e(3)]]],
  log: [[ops.log(p), [Math.log(0.25), 0, Math.log(4), Math.log(16)]]],
  sqrt: [[ops.sqrt(p), [0.5, 1, 2, 4]]],
  reciprocal: [[ops.reciprocal(p), [4, 1, 0.25, 0.0625]]],
  abs: [[ops.abs(x), [2, 0, 0.5, 3]]],
  sign: [[ops.sign(x), [-1, 0, 1, 1]]],
  tanh: [[ops.tanh(x), [-2, 0, 0.5, 3].map(Math.tanh)]],
  sigmoid: [[ops.sigmoid(x), [-2, 0, 0.5, 3].map(v => 1 / (1 + e(-v)))]],
  silu: [[ops.silu(x), [-2, 0, 0.5, 3].map(v => v / (1 + e(-v)))]],
  softplus: [
    [ops.softplus(x), [-2, 0, 0.5, 3].map(v => Math.log1p(e(v)))],
    [ops.softplus(constant(floats(-200, 200), [2])), [0, 200]],
  ],
  cast: [
    [ops.cast(constant(ints(-3, 5), [2]), 'float32'), [-3, 5]],
    [ops.cast(constant(floats(2.9, -1), [2]), 'int64'), [2, -1]],
    [ops.cast(yes, 'int32'), [1, 1, 0, 0]],
  ],
  stopGradient: [[ops.stopGradient(ops.neg(x)), [2, -0, -0.5, -3]]],
  straightThrough: [[ops.straightThrough(ops.neg(x), y), [2, -0, -0.5, -3]]],
  matmul: [
    [ops.matmul(grid, constant(floats(1, 0, 0, 1, 1, 1), [3, 2])), [4, 5, 10, 11]],
    [ops.matmul(ops.reshape(p, [2, 2, 1]), ops.reshape(x, [2, 1, 2])), [-0.5, 0, -2, 0, 2, 12, 8, 48]],
  ],
  gemm: [
    [ops.linear(grid, constant(floats(1, 1, 0, 0, 0, 2), [2, 3]), constant(floats(10, 20), [2])), [13, 26, 19, 32]],
    [ops.gemm(grid, grid, { transA: true, transB: false }), [17, 22, 27, 22, 29, 36, 27, 36, 45]],
  ],
  reshape: [[ops.reshape(grid, [3, 2]), [1, 2, 3, 4, 5, 6]]],
  transpose: [[ops.transpose(grid, [1, 0]), [1, 4, 2, 5, 3, 6]]],
  slice: [[ops.slice(grid, 1, 1, 3), [2, 3, 5, 6]]],
  pad: [[ops.pad(grid, 1, 1, 0), [0, 1, 2, 3, 0, 4, 5, 6]]],
  concat: [[ops.concat([grid, ops.neg(grid)], 1), [1, 2, 3, -1, -2, -3, 4, 5, 6, -4, -5, -6]]],
  expand: [[ops.expand(constant(floats(1, 2), [2, 1]), [2, 'B']), [1, 1, 2, 2]]],
  gatherRows: [
    [ops.gatherRows(grid, constant(ints(1, 0, 1), [3])), [4, 5, 6, 1, 2, 3, 4, 5, 6]],
    [ops.gatherRows(constant(ints(7, 8), [2]), constant(ints(1), [])), [8]],
    [ops.gatherRows(grid, constant(ints(2, 0, 0, 1), [2, 2]), 1), [3, 1, 1, 2, 6, 4, 4, 5]],
  ],
  scatterAddRows: [
    [ops.scatterAddRows(constant(ints(2, 0, 2), [3]), ops.transpose(grid, [1, 0]), 4), [2, 5, 0, 0, 4, 10, 0, 0]],
  ],
  spread: [
    [
      ops.spread(ops.reshape(grid, [1, 3, 2]), {
        places: constant(ints(2, 0, 2, 1), [4]),
        own: constant(ints(1, 3, 0), [3]),
        extra: constant(ints(2), [1, 1]),
        line: constant(ints(0, 0, 0), [3]),
        repeated: constant(floats(0, 0, 1), [3, 1]),
      }),
      [5, 6, 1, 2, 5, 6, 3, 4],
    ],
  ],
  takeLast: [[ops.takeLast(grid, constant(ints(2, 0), [2])), [3, 4]]],
  putLast: [
    [ops.putLast(constant(ints(2, 0), [2]), constant(floats(7, 8), [2]), 3), [0, 0, 7, 8, 0, 0]],
    [ops.putLast(constant(ints(2, 0), [2]), constant(floats(7, 8), [2]), 3, grid), [1, 2, 10, 12, 5, 6]],
  ],
  reduceSum: [
    [ops.reduceSum(grid), [21]],
    [ops.reduceSum(grid, [0]), [5, 7, 9]],
    [ops.reduceSum(constant(ints(2, 3), [2])), [5]],
  ],
  reduceMax: [[ops.reduceMax(ops.neg(grid), [1], true), [-1, -4]]],
  argmax: [[ops.argmax(constant(floats(1, 3, 3, 0, -1, -2), [2, 3])), [1, 0]]],
  cumsum: [
    [ops.cumsum(grid), [1, 3, 6, 4, 9, 15]],
    [ops.cumsum(grid, { reverse: true }), [6, 5, 3, 15, 11, 6]],
  ],
  rms: [
    [ops.rms(grid, 0), [Math.sqrt(14 / 3), Math.sqrt(77 / 3)]],
    [ops.rms(constant(floats(0, 0), [1, 2]), 0.25), [0.5]],
  ],
  softmax: [[ops.softmax(constant(floats(0, 0, 1000, 1000 + Math.log(3)), [2, 2])), [0.5, 0.5, 0.25, 0.75]]],
  // runtime-ops.test.ts has the values of each.
  // frozen.test.ts.
  frozenProduct: [],
  operator: [],
  logSoftmax: [[ops.logSoftmax(constant(floats(0, 0, 0, 100), [2, 2])), [Math.log(0.5), Math.log(0.5), -100, 0]]],
};

describe('values', () => {
  it('are listed for every primitive', () => {
    expect(Object.keys(VALUES).sort()).toEqual([...PRIMITIVES].sort());
    for (const [op, cases] of Object.entries(VALUES)) {
      for (const [node] of cases) {
        const found = node.op === op || node.inputs.some(each => each.op === op);
        expect(found, op).toBe(true);
      }
    }
  });

  for (const [op, cases] of Object.entries(VALUES)) {
    if (cases.length === 0) continue;
    it(`${op} computes what its name says`, async () => {
      for (const [node, expected] of cases) {
        const found = await valuesOf(node, {}, { B: 2 });
        expect(found.length).toBe(expected.length);
        // The runtime's exp, tanh and the like are within a few ulp; 1000 + log 3 has an ulp of 6e-5.
        for (const [i, value] of found.entries()) expect(Math.abs(value - expected[i]!), op).toBeLessThan(3e-5);
      }
    });
  }

  it('input passes on what it is fed', async () => {
    expect(await valuesOf(input('a', ['B']), { a: floats(1, 2) }, { B: 2 })).toEqual([1, 2]);
    expect(await valuesOf(input('a', [2], 'bool'), { a: Uint8Array.of(0, 1) })).toEqual([0, 1]);
  });
});

describe('composites', () => {
  it('silu, geluTanh, softCap, clamp, square, mean, rmsNorm, full', async () => {
    const { silu, gelu, capped, clamp, square, mean, symbolic, norm, full } = (await evaluate(
      {
        silu: ops.silu(x),
        gelu: ops.geluTanh(x),
        capped: ops.softCap(x, 2),
        clamp: ops.clamp(x, -1, 1),
        square: ops.square(x),
        mean: ops.mean(grid, [1]),
        symbolic: ops.mean(input('a', ['B', 'T'])),
        norm: ops.rmsNorm(constant(floats(3, 4), [1, 2]), constant(floats(1, 10), [2]), 0.5),
        full: ops.full(7, ['B']),
      },
      { a: floats(1, 2, 3, 4, 5, 6) },
      { B: 2, T: 3 },
    )) as Record<string, Float32Array>;
    for (const [i, v] of [-2, 0, 0.5, 3].entries()) expect(silu![i]).toBeCloseTo(v / (1 + e(-v)), 6);
    // x · Φ(x) from a table of the normal distribution; the approximation is good to three decimals.
    for (const [i, v] of [-0.0455, 0, 0.34573, 2.99595].entries()) expect(gelu![i]).toBeCloseTo(v, 3);
    for (const [i, v] of [-2, 0, 0.5, 3].entries()) expect(capped![i]).toBeCloseTo(2 * Math.tanh(v / 2), 6);
    expect([...clamp!]).toEqual([-1, 0, 0.5, 1]);
    expect([...square!]).toEqual([4, 0, 0.25, 9]);
    expect([...mean!]).toEqual([2, 5]);
    expect([...symbolic!]).toEqual([3.5]);
    expect(norm![0]).toBeCloseTo(3 / Math.sqrt(13), 6);
    expect(norm![1]).toBeCloseTo(40 / Math.sqrt(13), 5);
    expect([...full!]).toEqual([7, 7]);
  });
});

describe('the runtime', () => {
  it('keeps the meaning of layout operations when it moves transpositions through them', async () => {
    const x = input('x', ['B', 'T', 2, 3]);
    const turned = ops.transpose(x, [0, 2, 1, 3]);
    const back = (node: Node) => ops.transpose(node, [0, 2, 1, 3]);
    const pairs = {
      pad: [back(ops.pad(turned, 1, 1, 0)), ops.pad(x, 2, 1, 0)],
      slice: [back(ops.slice(turned, 1, 1, 2)), ops.slice(x, 2, 1, 2)],
      sum: [ops.transpose(ops.reduceSum(turned, [3]), [0, 2, 1]), ops.reduceSum(x, [3])],
      expand: [
        back(ops.expand(ops.slice(turned, 1, 0, 1), ['B', 4, 'T', 3])),
        ops.expand(ops.slice(x, 2, 0, 1), ['B', 'T', 4, 3]),
      ],
      concat: [back(ops.concat([turned, turned], 2)), ops.concat([x, x], 1)],
    } as const;
    for (const [name, [a, b]] of Object.entries(pairs)) {
      const feeds = { x: wave(2 * 2 * 2 * 3) };
      expect(await valuesOf(a, feeds, { B: 2, T: 2 }), name).toEqual(await valuesOf(b, feeds, { B: 2, T: 2 }));
    }
  });
});
