import { type Node, type Shape, scalar } from '../graph.ts';
import { showShape } from '../shape.ts';
import { type Emission, primitive, requireDType } from './primitive.ts';

interface Reduction {
  readonly [key: string]: boolean | readonly number[];
  /** Sorted, not negative. */
  readonly axes: readonly number[];
  readonly keepDims: boolean;
}

function reduced(shape: Shape, { axes, keepDims }: Reduction): Shape {
  return keepDims ? shape.map((dim, i) => (axes.includes(i) ? 1 : dim)) : shape.filter((_, i) => !axes.includes(i));
}

function emitReduction(operator: string) {
  return (emission: Emission, inputs: readonly string[], { attributes: { axes, keepDims } }: Node<Reduction>) =>
    emission.node(operator, [inputs[0]!, emission.dims(axes)], { keepdims: Number(keepDims) });
}

const kept = (x: Node, axes: readonly number[]) => reduced(x.shape, { axes, keepDims: true });

function requireLastAxis(op: string, x: Node): void {
  requireDType(op, x, 'float32');
  if (x.shape.length === 0) throw new RangeError(`${op}: a scalar has no last axis`);
}

export const reductions = {
  reduceSum: primitive<Reduction>({
    infer: ([x], attributes) => {
      requireDType('reduceSum', x!, 'float32', 'int64', 'int32');
      return { shape: reduced(x!.shape, attributes), dtype: x!.dtype };
    },
    derivative: ({ inputs: [x], attributes: { axes } }, dy, ops) => [
      ops.expand(ops.reshape(dy, kept(x!, axes)), x!.shape),
    ],
    emit: emitReduction('ReduceSum'),
  }),

  // Equal maxima share the gradient, as in PyTorch's amax.
  reduceMax: primitive<Reduction>({
    infer: ([x], attributes) => {
      requireDType('reduceMax', x!, 'float32');
      return { shape: reduced(x!.shape, attributes), dtype: x!.dtype };
    },
    derivative: (y, dy, ops) => {
      const [x] = y.inputs;
      const axes = y.attributes.axes;
      const shape = kept(x!, axes);
      const maximal = ops.cast(ops.equal(x!, ops.reshape(y, shape)), 'float32');
      const share = ops.div(ops.reshape(dy, shape), ops.reduceSum(maximal, axes, true));
      return [ops.mul(maximal, share)];
    },
    emit: emitReduction('ReduceMax'),
  }),

  // Last axis; the first of equal maxima.
  argmax: primitive({
    infer: ([x]) => {
      requireLastAxis('argmax', x!);
      return { shape: x!.shape.slice(0, -1), dtype: 'int64' };
    },
    derivative: 'none',
    emit: (emission, inputs) => emission.node('ArgMax', inputs, { axis: -1, keepdims: 0 }),
  }),

  // Last axis; `reverse` sums from the end.
  cumsum: primitive<{ reverse: boolean }>({
    infer: ([x]) => {
      requireLastAxis('cumsum', x!);
      return { shape: x!.shape, dtype: 'float32' };
    },
    derivative: ({ attributes: { reverse } }, dy, ops) => [ops.cumsum(dy, { reverse: !reverse })],
    emit: (emission, inputs, { attributes: { reverse } }) =>
      emission.node('CumSum', [inputs[0]!, emission.dims([-1])], { reverse: Number(reverse) }),
  }),

  // Root mean square of the last axis, which is kept: sqrt(mean(x²) + eps); dy/dx = x / (d y).
  rms: primitive<{ eps: number }>({
    infer: ([x]) => {
      requireLastAxis('rms', x!);
      if (typeof x!.shape.at(-1) !== 'number')
        throw new RangeError(`rms: the last axis of ${showShape(x!.shape)} is symbolic`);
      return { shape: [...x!.shape.slice(0, -1), 1], dtype: 'float32' };
    },
    derivative: (y, dy, ops) => {
      const x = y.inputs[0]!;
      const size = scalar(x.shape.at(-1) as number);
      return [ops.mul(x, ops.div(dy, ops.mul(y, size)))];
    },
    emit: (emission, [x], { inputs, attributes: { eps } }) => {
      const squares = emission.node('ReduceSumSquare', [x!, emission.dims([-1])], { keepdims: 1 });
      const mean = emission.node('Mul', [squares, emission.scalar(1 / (inputs[0]!.shape.at(-1) as number))]);
      return emission.node('Sqrt', [emission.node('Add', [mean, emission.scalar(eps)])]);
    },
  }),

  softmax: primitive({
    infer: ([x]) => {
      requireLastAxis('softmax', x!);
      return { shape: x!.shape, dtype: 'float32' };
    },
    derivative: (y, dy, ops) => {
      const weighted = ops.mul(dy, y);
      return [ops.sub(weighted, ops.mul(y, ops.reduceSum(weighted, [-1], true)))];
    },
    emit: (emission, inputs) => emission.node('Softmax', inputs, { axis: -1 }),
  }),

  logSoftmax: primitive({
    infer: ([x]) => {
      requireLastAxis('logSoftmax', x!);
      return { shape: x!.shape, dtype: 'float32' };
    },
    derivative: (y, dy, ops) => [ops.sub(dy, ops.mul(ops.exp(y), ops.reduceSum(dy, [-1], true)))],
    emit: (emission, inputs) => emission.node('LogSoftmax', inputs, { axis: -1 }),
  }),
};
