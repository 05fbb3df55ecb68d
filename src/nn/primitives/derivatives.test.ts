import { describe, expect, it } from 'vitest';
import { type GradientCase, gradientErrors, ints, wave } from '../../../tests/support/graph.ts';
import { FROZEN_DTYPES, freeze } from '../frozen.ts';
import { constant, type Node, PRIMITIVES, type PrimitiveName, type Shape, scalar } from '../graph.ts';
import * as ops from '../ops.ts';
import { primitives } from './table.ts';

/** At least 0.5 away from 0, both signs. */
const awayFromZero = (value: number) => value + (value < 0 ? -0.5 : 0.5);
const positive = (value: number) => value + 1.5;
/** The second input stays at least 0.3 away from the first, on either side. */
const apart = (value: number, index: number, which: number) => (which === 0 ? value * 0.1 : 0.4 * (index % 2 ? 1 : -1));
/** All different by 0.2 or more. */
const ranked = (_: number, index: number) => ((index * 7) % 24) * 0.2;

const PAIRS: readonly (readonly [Shape, Shape])[] = [
  [
    [2, 3],
    [2, 3],
  ],
  [[2, 3], [3]],
  [
    [2, 1],
    [1, 3],
  ],
  [[], [2, 2]],
  [['N', 3], [3]],
  [
    ['N', 1],
    ['N', 'M'],
  ],
  [
    [1, 1],
    ['N', 'M'],
  ],
];
const symbols = { N: 2, M: 3 };
type Map = GradientCase['map'];
const binary = (op: (a: Node, b: Node) => Node, map?: Map): GradientCase[] =>
  PAIRS.map(of => ({ of, symbols, ...(map && { map }), build: ([a, b]) => op(a!, b!) }));

const unary = (op: (x: Node) => Node, map?: Map, shapes: readonly Shape[] = [[], [5], [2, 1], ['N', 'M']]) =>
  shapes.map((shape): GradientCase => ({ of: [shape], symbols, ...(map && { map }), build: ([x]) => op(x!) }));
const ROWS: readonly Shape[] = [[4], [2, 1], [2, 3], ['N', 'M'], ['N', 1, 3]];

const flags = [true, false];
const reductions = (op: typeof ops.reduceSum, map?: Map) =>
  (
    [
      [[2, 3], [1], false],
      [[2, 3], [0], true],
      [[2, 3], [0, 1], false],
      [[2, 1, 3], [-2], false],
      [['N', 'M'], [0], false],
      [['N', 'M', 2], [0, 1], true],
      [['M', 'N', 2], [0], false],
    ] as const
  ).map(
    ([shape, axes, keepDims]): GradientCase => ({
      of: [shape],
      symbols,
      ...(map && { map }),
      build: ([x]) => op(x!, axes, keepDims),
    }),
  );

/** Three rows at seven places: row 0 at three of them, row 1 at one, row 2 at two, and one that is not used. */
const spreading = {
  places: { shape: ['M'], dtype: 'int64', data: ints(0, 2, 0, 1, 0, 2, 0) },
  own: { shape: ['N'], dtype: 'int64', data: ints(0, 3, 5) },
  extra: { shape: [2, 2], dtype: 'int64', data: ints(2, 4, 1, 6) },
  line: { shape: ['N'], dtype: 'int64', data: ints(0, 1, 1) },
  repeated: { shape: ['N', 1], dtype: 'float32', data: Float32Array.of(1, 0, 1) },
  used: { shape: ['M', 1], dtype: 'float32', data: Float32Array.of(1, 1, 1, 1, 1, 1, 0) },
} as const;

/** [5, 26] in 8 and in 4 bits. */
const frozen = FROZEN_DTYPES.map(dtype => {
  const { values, scales } = freeze(dtype, wave(5 * 26, 3), 26, 'w');
  const type = dtype === 'int8' ? ('int8' as const) : ('uint8' as const);
  return {
    dtype,
    values: { shape: dtype === 'int8' ? [5, 26] : [values.length], dtype: type, data: values },
    scales: { shape: [scales.length], dtype: 'float32' as const, data: scales },
  };
});

const CASES: Partial<Record<PrimitiveName, readonly GradientCase[]>> = {
  add: binary(ops.add),
  sub: binary(ops.sub),
  mul: binary(ops.mul),
  div: binary(ops.div, awayFromZero),
  min: binary(ops.min, apart),
  max: binary(ops.max, apart),
  where: PAIRS.map(of => ({
    of,
    symbols,
    build: ([a, b]) => ops.where(ops.less(ops.stopGradient(ops.add(a!, b!)), scalar(0.1)), a!, b!),
    map: (value, index, which) => (which === 0 ? value * 0.01 : index % 2 ? 1 : -1),
  })),
  frozenProduct: frozen.flatMap(({ dtype, ...fixed }) =>
    [false, true].map(back => ({
      of: [['N', back ? 5 : 26]],
      symbols,
      fixed,
      build: ([x], { values, scales }) =>
        ops.frozenProduct(x!, values!, scales!, { dtype, rows: 5, columns: 26, back }),
    })),
  ),
  straightThrough: unary(x => ops.straightThrough(ops.stopGradient(ops.tanh(x)), ops.tanh(x))),
  neg: unary(ops.neg),
  exp: unary(ops.exp),
  log: unary(ops.log, positive),
  sqrt: unary(ops.sqrt, positive),
  reciprocal: unary(ops.reciprocal, awayFromZero),
  abs: unary(ops.abs, awayFromZero),
  tanh: unary(ops.tanh),
  sigmoid: unary(ops.sigmoid, value => 3 * value),
  silu: unary(ops.silu, value => 3 * value),
  softplus: unary(ops.softplus, value => 3 * value),
  matmul: (
    [
      [
        [2, 3],
        [3, 4],
      ],
      [
        [1, 3],
        [3, 1],
      ],
      [
        [2, 2, 3],
        [2, 3, 2],
      ],
      [
        ['N', 'M'],
        ['M', 2],
      ],
      [
        ['N', 2, 1, 'M'],
        ['N', 2, 'M', 1],
      ],
    ] as const
  ).map(of => ({ of, symbols, build: ([a, b]) => ops.matmul(a!, b!) })),
  gemm: [
    ...flags.flatMap(transA =>
      flags.map(
        (transB): GradientCase => ({
          of: [transA ? [3, 'N'] : ['N', 3], transB ? [4, 3] : [3, 4]],
          symbols,
          build: ([a, b]) => ops.gemm(a!, b!, { transA, transB }),
        }),
      ),
    ),
    { of: [['N', 3], [2, 3], [2]], symbols, build: ([x, w, b]) => ops.linear(x!, w!, b!) },
    {
      of: [
        [1, 3],
        [2, 3],
      ],
      build: ([x, w]) => ops.linear(x!, w!),
    },
  ],
  reshape: (
    [
      [
        [2, 3],
        [3, 2],
      ],
      [[6], [1, 6, 1]],
      [[2], [2]],
      [['N', 'M'], ['M*N']],
      [
        ['M*N', 2],
        ['N', 'M', 2],
      ],
      [
        ['N', 2, 'M'],
        [2, 'M', 'N'],
      ],
    ] as const
  ).map(([from, to]) => ({ of: [from], symbols, build: ([x]) => ops.reshape(x!, to) })),
  transpose: (
    [
      [
        [2, 3],
        [1, 0],
      ],
      [
        [2, 1, 3],
        [2, 0, 1],
      ],
      [
        ['N', 2, 'M'],
        [1, 2, 0],
      ],
    ] as const
  ).map(([shape, perm]) => ({ of: [shape], symbols, build: ([x]) => ops.transpose(x!, perm) })),
  slice: (
    [
      [[5], 0, 1, 3],
      [[2, 3], -1, 0, 1],
      [['N', 4], 1, 2, 4],
      [[2, 'M+1'], 1, 1, 'M+1'],
      [['N', 'M'], 0, 'N-1', 'N'],
    ] as const
  ).map(([shape, axis, start, end]) => ({ of: [shape], symbols, build: ([x]) => ops.slice(x!, axis, start, end) })),
  pad: (
    [
      [[3], 0, 1, 2],
      [['N', 2], 0, 0, 'M'],
      [[2, 1], 1, 1, 0],
    ] as const
  ).map(([shape, axis, before, after]) => ({ of: [shape], symbols, build: ([x]) => ops.pad(x!, axis, before, after) })),
  concat: (
    [
      [[[2], [3], [1]], 0],
      [
        [
          [2, 1],
          [2, 2],
        ],
        1,
      ],
      [
        [
          ['N', 2],
          ['N', 1],
        ],
        -1,
      ],
      [
        [
          ['N', 2],
          ['M', 2],
          [1, 2],
        ],
        0,
      ],
    ] as const
  ).map(([of, axis]) => ({ of, symbols, build: xs => ops.concat(xs, axis) })),
  expand: (
    [
      [[], [2, 3]],
      [[3], [2, 3]],
      [
        [2, 1],
        [2, 3],
      ],
      [
        ['N', 1],
        ['N', 'M'],
      ],
      [
        [1, 'M'],
        [2, 'N', 'M'],
      ],
    ] as const
  ).map(([from, to]) => ({ of: [from], symbols, build: ([x]) => ops.expand(x!, to) })),
  gatherRows: [
    { of: [[3, 2]], build: ([x]) => ops.gatherRows(x!, constant(ints(2, 0, 2, 2), [4])) },
    { of: [[3]], build: ([x]) => ops.gatherRows(x!, constant(ints(1, 1), [2])) },
    { of: [['M', 2, 2]], symbols, build: ([x]) => ops.gatherRows(x!, constant(ints(1, 1, 0, 2), [2, 2])) },
    { of: [['M', 2]], symbols, build: ([x]) => ops.gatherRows(x!, constant(ints(1), [])) },
    { of: [[2, 'M', 2]], symbols, build: ([x]) => ops.gatherRows(x!, constant(ints(1, 0, 1, 1), [2, 2]), 1) },
    {
      of: [[3, 2]],
      symbols,
      fixed: { index: { shape: ['N'], dtype: 'int64', data: ints(1, 1) } },
      build: ([x], { index }) => ops.gatherRows(x!, index!),
    },
  ],
  scatterAddRows: [
    { of: [[4, 2]], build: ([x]) => ops.scatterAddRows(constant(ints(2, 0, 2, 2), [4]), x!, 3) },
    { of: [[1, 1]], build: ([x]) => ops.scatterAddRows(constant(ints(0), [1]), x!, 2) },
    {
      of: [['N', 2]],
      symbols,
      fixed: { index: { shape: ['N'], dtype: 'int64', data: ints(1, 1) } },
      build: ([x], { index }) => ops.scatterAddRows(index!, x!, 'M'),
    },
  ],
  // The unused place counts for nothing downstream, as the derivative assumes: here it is multiplied by 0.
  spread: [
    {
      of: [[2, 'N', 2]],
      symbols: { N: 3, M: 7 },
      fixed: spreading,
      build: ([x], { used, ...indices }) => ops.mul(ops.spread(x!, indices as unknown as ops.Spread), used!),
    },
  ],
  takeLast: [
    { of: [[3, 4]], build: ([x]) => ops.takeLast(x!, constant(ints(3, 0, 3), [3])) },
    { of: [[2, 1]], build: ([x]) => ops.takeLast(x!, constant(ints(0, 0), [2])) },
    { of: [[4]], build: ([x]) => ops.takeLast(x!, constant(ints(2), [])) },
    {
      of: [['N', 'M']],
      symbols,
      fixed: { index: { shape: ['N'], dtype: 'int64', data: ints(2, 1) } },
      build: ([x], { index }) => ops.takeLast(x!, index!),
    },
  ],
  putLast: [
    { of: [[3]], build: ([x]) => ops.putLast(constant(ints(3, 0, 3), [3]), x!, 4) },
    { of: [[2, 2]], build: ([x]) => ops.putLast(constant(ints(0, 1, 1, 0), [2, 2]), x!, 2) },
    { of: [[3], [3, 4]], build: ([x, onto]) => ops.putLast(constant(ints(3, 0, 3), [3]), x!, 4, onto) },
    {
      of: [['N']],
      symbols,
      fixed: { index: { shape: ['N'], dtype: 'int64', data: ints(2, 1) } },
      build: ([x], { index }) => ops.putLast(index!, x!, 'M'),
    },
  ],
  reduceSum: reductions(ops.reduceSum),
  reduceMax: reductions(ops.reduceMax, ranked),
  cumsum: [
    ...unary(ops.cumsum, undefined, ROWS),
    { of: [['N', 'M']], symbols, build: ([x]) => ops.cumsum(x!, { reverse: true }) },
  ],
  rms: [
    ...unary(x => ops.rms(x, 0.1), undefined, [[2, 3]]),
    { of: [['N', 3]], symbols, build: ([x]) => ops.rms(x!, 0.1) },
  ],
  softmax: unary(ops.softmax, undefined, ROWS),
  logSoftmax: unary(ops.logSoftmax, undefined, ROWS),
};

describe('derivative rules', () => {
  it('exist for every primitive, and every one of them is checked below', () => {
    expect(Object.keys(primitives).sort()).toEqual([...PRIMITIVES].sort());
    // Operators of the runtime throw; runtime-ops.test.ts.
    const differentiable = PRIMITIVES.filter(op => op !== 'operator' && primitives[op].derivative !== 'none');
    expect(Object.keys(CASES).sort()).toEqual(differentiable.sort());
  });

  for (const [op, cases] of Object.entries(CASES)) {
    it(`${op} agrees with finite differences`, async () => {
      for (const [i, each] of cases.entries()) {
        expect(await gradientErrors(each), `case ${i}: ${JSON.stringify(each.of)}`).toEqual([]);
      }
    });
  }

  it('are caught when wrong', async () => {
    // The value of x·y with the gradient of x·y + 0.01·x.
    const wrong: GradientCase = {
      of: [[3], [3]],
      build: ([x, y]) => {
        const extra = ops.mul(x!, scalar(0.01));
        return ops.add(ops.mul(x!, y!), ops.sub(extra, ops.stopGradient(extra)));
      },
    };
    expect(await gradientErrors(wrong)).not.toEqual([]);
  });
});
