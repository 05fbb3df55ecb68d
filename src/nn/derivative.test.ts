import { describe, expect, it } from 'vitest';
import { evaluate, floats, gradientErrors, ints, wave } from '../../tests/support/graph.ts';
import { ancestors, gradients } from './derivative.ts';
import { constant, input, type Node, recomputed, scalar } from './graph.ts';
import * as ops from './ops.ts';

/** The gradient of Σ y for a vector x of given values. */
async function gradientOf(build: (x: Node) => Node, ...values: number[]): Promise<number[]> {
  const x = input('x', [values.length]);
  const [dx] = gradients(ops.reduceSum(build(x)), [x]);
  const { y } = await evaluate({ y: dx! }, { x: floats(...values) });
  return Array.from(y as Float32Array);
}

describe('gradients', () => {
  it('of a two-layer perceptron with a softmax loss agree with finite differences', async () => {
    const errors = await gradientErrors({
      of: [['N', 3], [4, 3], [4], [5, 4], [5], [4]],
      symbols: { N: 3 },
      fixed: { target: { shape: ['N'], dtype: 'int64', data: ints(4, 0, 4) } },
      build: ([x, w1, b1, w2, b2, norm], { target }) => {
        const hidden = ops.rmsNorm(ops.silu(ops.linear(x!, w1!, b1)), ops.add(norm!, scalar(2)), 0.1);
        return ops.neg(ops.mean(ops.takeLast(ops.logSoftmax(ops.linear(hidden, w2!, b2)), target!)));
      },
    });
    expect(errors).toEqual([]);
  });

  it('of one head of attention whose keys are spread agree with finite differences', async () => {
    // Tokens 1 and 2 both follow token 0; each row has one query and two keys, the second of the first row not used.
    const mask = { shape: ['N', 1, 2], dtype: 'float32', data: floats(0, -1e30, 0, 0, 0, 0) } as const;
    const errors = await gradientErrors({
      of: [
        ['N', 2],
        [6, 2],
      ],
      symbols: { N: 3 },
      fixed: {
        mask,
        places: { shape: ['2*N'], dtype: 'int64', data: ints(0, 0, 0, 1, 0, 2) },
        own: { shape: ['N'], dtype: 'int64', data: ints(0, 3, 5) },
        extra: { shape: [1, 2], dtype: 'int64', data: ints(2, 4) },
        line: { shape: ['N'], dtype: 'int64', data: ints(0, 0, 0) },
        repeated: { shape: ['N', 1], dtype: 'float32', data: floats(1, 0, 0) },
      },
      build: ([x, w], fixed) => {
        const qkv = ops.reshape(ops.linear(x!, w!), [1, 'N', 6]);
        const [q, k, v] = [0, 2, 4].map(at => ops.slice(qkv, 2, at, at + 2));
        const places = fixed as unknown as ops.Spread;
        const ofRows = (keys: Node) => ops.reshape(ops.spread(keys, places), ['N', 2, 2]);
        const scores = ops.matmul(ops.reshape(q!, ['N', 1, 2]), ops.transpose(ofRows(k!), [0, 2, 1]));
        return ops.matmul(ops.softmax(ops.add(scores, fixed.mask!)), ofRows(v!));
      },
    });
    expect(errors).toEqual([]);
  });

  it('of gradients agree with finite differences', async () => {
    const second = (build: (x: Node) => Node) => ({
      of: [[2, 3]],
      build: ([x]: readonly Node[]) => gradients(ops.reduceSum(ops.square(build(x!))), [x!])[0]!,
    });
    expect(await gradientErrors(second(ops.softmax))).toEqual([]);
    expect(await gradientErrors(second(x => ops.tanh(ops.linear(x, x))))).toEqual([]);
    expect(await gradientErrors(second(x => ops.gatherRows(x, constant(ints(1, 1, 0), [3]))))).toEqual([]);
    expect(await gradientErrors(second(x => ops.takeLast(ops.exp(x), constant(ints(1, 0), [2]))))).toEqual([]);
  });

  it('add up over every use of a node', async () => {
    expect(await gradientOf(x => ops.add(ops.mul(x, x), ops.sub(x, x)), 1, -3)).toEqual([2, -6]);
  });

  it('of slices agree with finite differences, joined where the slices tile their source', async () => {
    const parts = (bounds: readonly (readonly [number, number])[]) => ({
      of: [['N', 5]],
      symbols: { N: 2 },
      build: ([x]: readonly Node[]) =>
        ops.concat(
          bounds.map(([start, end], i) => ops.mul(ops.slice(x!, 1, start, end), scalar(i + 1))),
          1,
        ),
    });
    const operators = ({ of, build }: ReturnType<typeof parts>) => {
      const x = input('x', of[0]!);
      const [dx] = gradients(ops.reduceSum(ops.square(build([x]))), [x]);
      return ancestors([dx!]).map(node => node.op);
    };
    const [tiled, gap, overlap, twice] = [
      parts([
        [2, 5],
        [0, 1],
        [1, 2],
      ]),
      parts([
        [0, 2],
        [3, 5],
      ]),
      parts([
        [0, 3],
        [2, 5],
      ]),
      parts([
        [0, 2],
        [2, 5],
        [2, 5],
        [0, 2],
        [1, 4],
      ]),
    ] as const;
    for (const each of [tiled, gap, overlap, twice]) expect(await gradientErrors(each)).toEqual([]);
    const pads = [tiled, gap, overlap, twice].map(each => operators(each).filter(op => op === 'pad').length);
    expect(pads).toEqual([0, 2, 2, 1]);
  });

  it('at kinks follow the stated rules', async () => {
    expect(await gradientOf(x => ops.min(x, scalar(1)), 0, 1, 2)).toEqual([1, 1, 0]);
    expect(await gradientOf(x => ops.min(scalar(1), x), 0, 1, 2)).toEqual([1, 0, 0]);
    expect(await gradientOf(x => ops.max(x, scalar(1)), 0, 1, 2)).toEqual([0, 1, 1]);
    expect(await gradientOf(x => ops.max(scalar(1), x), 0, 1, 2)).toEqual([0, 0, 1]);
    expect(await gradientOf(x => ops.clamp(x, -1, 1), -2, -1, 0, 1, 2)).toEqual([0, 1, 1, 1, 0]);
    expect(await gradientOf(ops.abs, -2, 0, 2)).toEqual([-1, 0, 1]);
    expect(await gradientOf(x => ops.reduceMax(x), 3, 1, 3)).toEqual([0.5, 0, 0.5]);
    expect(await gradientOf(ops.softplus, -200, 0, 200)).toEqual([expect.closeTo(0, 6), 0.5, 1]);
  });

  it('do not leak NaN through the branch not taken', async () => {
    const safe = (x: Node) => ops.where(ops.greater(x, scalar(0)), ops.mul(x, scalar(3)), scalar(0));
    expect(await gradientOf(x => safe(ops.mul(x, scalar(1))), Number.NaN, 2)).toEqual([0, 3]);
  });

  it('are zeros where the loss does not depend on a node', async () => {
    const [a, b] = [input('a', ['N', 2]), input('b', ['N', 2])];
    const steps = ops.cast(ops.argmax(b), 'float32');
    const loss = ops.add(ops.reduceSum(ops.square(a)), ops.reduceSum(ops.add(ops.stopGradient(b), ops.sign(b))));
    const [da, db, unrelated] = gradients(ops.add(loss, ops.reduceSum(steps)), [a, b, input('c', ['N'])]);
    const results = await evaluate({ da: da!, db: db!, unrelated: unrelated! }, { a: wave(4), b: wave(4) }, { N: 2 });
    expect(results.da).toEqual(wave(4).map(value => 2 * value));
    expect(results.db).toEqual(new Float32Array(4));
    expect(results.unrelated).toEqual(new Float32Array(2));
  });

  it('of the loss itself are 1, and of an inner node those of what follows', async () => {
    const x = input('x', []);
    const inner = ops.mul(x, scalar(5));
    const loss = ops.square(inner);
    const [one, atInner] = gradients(loss, [loss, inner]);
    const { one: first, atInner: second } = await evaluate({ one: one!, atInner: atInner! }, { x: floats(2) });
    expect([first![0], second![0]]).toEqual([1, 20]);
  });

  it('refuse what has none', () => {
    const x = input('x', ['N']);
    expect(() => gradients(x, [x])).toThrow('gradients: the loss must be a float32 scalar, got float32 [N]');
    expect(() => gradients(ops.reduceSum(x), [input('i', [2], 'int64')])).toThrow(
      'gradients: input of type int64 has no gradient',
    );
  });
});

describe('recomputed', () => {
  const LAYERS = 3;
  const weights = Array.from({ length: LAYERS }, (_, i) => input(`w${i}`, [4, 4]));
  /** Layers that keep what they compute, or do not. */
  const network = (x: Node, keep: boolean) => {
    const layer = (x: Node, w: Node) => ops.add(x, ops.silu(ops.linear(ops.rmsNorm(x, input('norm', [4]), 0.1), w)));
    return weights.reduce((x, w) => (keep ? layer(x, w) : recomputed(() => layer(x, w))), x);
  };
  const feeds = {
    x: wave(8),
    norm: wave(4, 1),
    ...Object.fromEntries(weights.map((_, i) => [`w${i}`, wave(16, i)])),
  };
  const gradientsOf = (keep: boolean) => {
    const x = input('x', ['N', 4]);
    const loss = ops.reduceSum(ops.square(network(ops.neg(x), keep)));
    return { loss, grads: gradients(loss, [x, input('unused', [1]), ...weights]) };
  };
  const model = (keep: boolean) => {
    const { loss, grads } = gradientsOf(keep);
    return { loss, ...Object.fromEntries(grads.map((node, i) => [`g${i}`, node])) };
  };

  it('values give the same gradients, bit for bit', async () => {
    expect(await evaluate(model(false), feeds, { N: 2 })).toEqual(await evaluate(model(true), feeds, { N: 2 }));
  });

  it('values are computed twice, the second time from what came into the region and after the regions behind it', () => {
    const count = (keep: boolean, op: string) => {
      const nodes = ancestors(Object.values(model(keep)));
      return nodes.filter(node => node.op === op && node.shape.length === 2 && node.shape[0] === 'N').length;
    };
    // silu's derivative reads its input; that of the product needs no more than its inputs.
    expect(count(false, 'rms')).toBe(2 * count(true, 'rms'));
    expect(count(true, 'rms')).toBe(LAYERS);
    const { grads } = gradientsOf(false);
    const last = grads.at(-1)!;
    // The gradient of the first layer needs that of the last: nothing of a layer is computed before its turn.
    expect(ancestors([grads[2]!])).toContain(last);
    const kept = gradientsOf(true).grads;
    expect(ancestors([kept[2]!])).not.toContain(kept.at(-1));
  });

  it('values are not touched by gradients that are no numbers', async () => {
    const x = input('x', ['N', 4]);
    const inner = recomputed(() => ops.silu(ops.square(ops.neg(x))));
    const [dx] = gradients(ops.reduceSum(ops.mul(inner, input('r', ['N', 4]))), [x]);
    const r = floats(Number.NaN, 1, 1, Number.POSITIVE_INFINITY);
    const { y } = await evaluate({ y: dx! }, { x: floats(1, -1, -2, -3), r }, { N: 1 });
    const slope = (v: number) => {
      const s = 1 / (1 + Math.exp(-(v * v)));
      return 2 * v * (s + v * v * s * (1 - s));
    };
    for (const [i, v] of [-1, -2].entries()) expect(y![i + 1]).toBeCloseTo(slope(v), 5);
  });
});
