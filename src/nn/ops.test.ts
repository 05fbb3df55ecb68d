import { describe, expect, it } from 'vitest';
import { constant, input, type Node } from './graph.ts';
import * as ops from './ops.ts';

const f = (...shape: (number | string)[]) => input('x', shape);
const i = (...shape: (number | string)[]) => input('i', shape, 'int64');
const b = (...shape: (number | string)[]) => input('b', shape, 'bool');

const spread = (x: Node) =>
  ops.spread(x, { places: i('M'), own: i('N'), extra: i('E', 'R'), line: i('N'), repeated: f('N', 1) });

describe('builders refuse', () => {
  const refused: readonly (readonly [name: string, build: () => Node, message: string])[] = [
    ['empty names', () => input('', [2]), 'input: the name is empty'],
    ['dimensions below 1', () => input('x', ['N', 0]), 'input "x": dimension 0 of [N,0] is not a positive integer'],
    ['fractions', () => input('x', [1.5]), 'dimension 1.5 of [1.5]'],
    ['constants of another size', () => constant(new Float32Array(3), [2]), 'constant: 3 values do not fill [2]'],
    ['other shapes', () => ops.add(f(2, 3), f(2)), 'add: shapes do not broadcast: [2,3] with [2]'],
    ['other symbols', () => ops.mul(f('N'), f('M')), 'mul: shapes do not broadcast: [N] with [M]'],
    ['mixed types', () => ops.add(f(2), i(2)), 'add: types differ: float32 and int64'],
    ['booleans in arithmetic', () => ops.sub(b(2), b(2)), 'sub: needs float32 or int64 or int32, got bool [2]'],
    ['integers in functions', () => ops.exp(i(2)), 'exp: needs float32, got int64 [2]'],
    ['numbers in logic', () => ops.and(f(2), b(2)), 'and: needs bool, got float32 [2]'],
    ['a float condition', () => ops.where(f(2), f(2), f(2)), 'where: needs bool, got float32 [2]'],
    ['mixed branches', () => ops.where(b(2), f(2), i(2)), 'where: types differ: float32 and int64'],
    ['a branch that does not fit', () => ops.where(b(2), f(3), f(1)), 'where: shapes do not broadcast: [2] with [3]'],
    ['inner dimensions', () => ops.matmul(f('N', 64), f(32, 8)), 'matmul: inner dimensions differ: [N,64] x [32,8]'],
    ['batches', () => ops.matmul(f('B', 2, 3), f(4, 3, 2)), 'matmul: leading dimensions differ: [B,2,3] x [4,3,2]'],
    ['ranks', () => ops.matmul(f('B', 2, 3), f(3, 2)), 'matmul: needs equal ranks of 2 or more: [B,2,3] x [3,2]'],
    ['integer products', () => ops.matmul(i(2, 2), i(2, 2)), 'matmul: needs float32'],
    ['weights', () => ops.linear(f('N', 64), f(8, 32)), 'gemm: inner dimensions differ: [N,64] x [8,32] transposed'],
    ['a bias', () => ops.linear(f('N', 4), f(8, 4), f(4)), 'gemm: the bias is [4], the result [N,8]'],
    ['unpacked rows', () => ops.linear(f('B', 'T', 4), f(8, 4)), 'gemm: a needs 2 axes, got [B,T,4]'],
    ['sizes', () => ops.reshape(f('B', 'T', 4), ['B', 'T', 2]), '[B,T,4] has 4*B*T elements, [B,T,2] has 2*B*T'],
    ['no permutation', () => ops.transpose(f(2, 3), [0, 0]), 'transpose: [0,0] does not permute the axes of [2,3]'],
    ['slices outside', () => ops.slice(f(4), 0, 2, 5), 'slice: [2, 5) is empty or outside axis 0 of [4]'],
    ['empty slices', () => ops.slice(f('N'), 0, 3, 3), 'slice: [3, 3) is empty or outside axis 0 of [N]'],
    ['axes', () => ops.slice(f(4), 1, 0, 2), 'slice: axis 1 is outside [4]'],
    ['nothing to join', () => ops.concat([], 0), 'concat: nothing to concatenate'],
    ['other edges', () => ops.concat([f(2, 3), f(2, 4)], 0), 'concat: shapes differ beside axis 0: [2,3], [2,4]'],
    ['joining types', () => ops.concat([f(2), i(2)], 0), 'concat: types differ: float32 and int64'],
    ['shrinking', () => ops.expand(f(2, 3), [3]), 'expand: [2,3] does not broadcast to [3]'],
    ['float indices', () => ops.gatherRows(f(2, 3), f(2)), 'gatherRows: needs int64, got float32 [2]'],
    ['rows of a scalar', () => ops.gatherRows(f(), i(2)), 'gatherRows: x has no axis to gather along'],
    ['index lengths', () => ops.scatterAddRows(i('N'), f('M', 2), 4), 'index [N] and updates [M,2] differ in length'],
    ['taking elsewhere', () => ops.takeLast(f('N', 5), i('M')), 'takeLast: index [M] does not fit x [N,5]'],
    ['putting elsewhere', () => ops.putLast(i('N'), f('M'), 3), 'putLast: index [N] and values [M] differ'],
    ['rows that are spread', () => spread(f('N', 2)), 'spread: x needs 3 axes, got [N,2]'],
    ['another inverse', () => spread(f(2, 'K', 4)), 'spread: an index [N] does not fit x [2,K,4]'],
    ['axes twice', () => ops.reduceSum(f(2, 3), [1, -1]), 'reduceSum: an axis is named twice: [1,-1] of [2,3]'],
    ['axes outside', () => ops.reduceMax(f(2, 3), [2]), 'reduceMax: axis 2 is outside [2,3]'],
    ['scalars', () => ops.softmax(f()), 'softmax: a scalar has no last axis'],
  ];
  for (const [name, build, message] of refused) {
    it(name, () => expect(build).toThrow(message));
  }
});

describe('builders', () => {
  it('infer shapes with symbols', () => {
    const heads = ops.transpose(ops.reshape(f('B*T', 64), ['B', 'T', 4, 16]), [0, 2, 1, 3]);
    expect(heads.shape).toEqual(['B', 4, 'T', 16]);
    const scores = ops.matmul(heads, ops.transpose(heads, [0, 1, 3, 2]));
    expect(scores.shape).toEqual(['B', 4, 'T', 'T']);
    expect(ops.concat([scores, f('B', 4, 'T', 1)], 3).shape).toEqual(['B', 4, 'T', 'T+1']);
    expect(ops.reshape(heads, ['T*B*64']).shape).toEqual(['64*B*T']);
    expect(ops.gatherRows(f(10, 8), i('P', 2)).shape).toEqual(['P', 2, 8]);
    expect(ops.argmax(f('P', 8))).toMatchObject({ shape: ['P'], dtype: 'int64' });
    expect(ops.less(f('N', 1), f(4))).toMatchObject({ shape: ['N', 4], dtype: 'bool' });
  });

  it('add nothing where nothing changes', () => {
    const x = f('N', 4);
    for (const same of [
      ops.reshape(x, ['N', 4]),
      ops.transpose(x, [0, 1]),
      ops.slice(x, 0, 0, 'N'),
      ops.expand(x, ['N', 4]),
      ops.cast(x, 'float32'),
      ops.concat([x], 1),
      ops.pad(x, 0, 0, 0),
      ops.sumTo(x, ['N', 4]),
      ops.reduceSum(x, []),
    ]) {
      expect(same).toBe(x);
    }
    // Broadcasting does what the expansion would.
    const column = f('N', 1);
    expect(ops.mul(ops.expand(column, ['N', 4]), x).inputs[0]).toBe(column);
    expect(ops.mul(ops.expand(column, ['N', 4]), ops.expand(column, ['N', 4])).shape).toEqual(['N', 4]);
  });
});
