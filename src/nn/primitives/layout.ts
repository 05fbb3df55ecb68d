import type { Dim, Node, Shape } from '../graph.ts';
import { addDims, broadcastShapes, canonical, sameShape, showShape, sizeOf, subDims } from '../shape.ts';
import { primitive } from './primitive.ts';

/**
 * ONNX Reshape target: 0 copies the input's dimension at the same place and one -1 is worked out by the runtime, so
 * most targets are constants; what is left needs the bound symbols.
 */
export function reshapeTarget(from: Shape, to: Shape): readonly Dim[] {
  const target = to.map((dim, i) => (typeof dim === 'string' && from[i] === dim ? 0 : dim));
  const open = target.filter(dim => typeof dim === 'string');
  return open.length === 1 ? target.map(dim => (typeof dim === 'string' ? -1 : dim)) : open.length === 0 ? target : to;
}

/** ONNX Expand target: 1 keeps the input's dimension. */
export function expandTarget(from: Shape, to: Shape): readonly Dim[] {
  return to.map((dim, i) => (from[i - to.length + from.length] === dim ? 1 : dim));
}

function requirePermutation(x: Node, perm: readonly number[]): void {
  const sorted = [...perm].sort((a, b) => a - b);
  if (perm.length !== x.shape.length || sorted.some((axis, i) => axis !== i)) {
    throw new RangeError(`transpose: [${perm.join(',')}] does not permute the axes of ${showShape(x.shape)}`);
  }
}

interface Range {
  readonly [key: string]: number | readonly Dim[];
  readonly axis: number;
  /** [start, end] of a slice, [before, after] of a pad. */
  readonly bounds: readonly [Dim, Dim];
}

/** Replaces one dimension. */
const withDim = (shape: Shape, axis: number, dim: Dim) => shape.map((old, i) => (i === axis ? dim : old));

export const layout = {
  reshape: primitive<{ shape: Shape }>({
    infer: ([x], { shape }) => {
      const target = canonical(shape);
      if (sizeOf(x!.shape) !== sizeOf(target)) {
        throw new RangeError(
          `reshape: sizes differ: ${showShape(x!.shape)} has ${sizeOf(x!.shape)} elements, ${showShape(target)} has ${sizeOf(target)}`,
        );
      }
      return { shape: target, dtype: x!.dtype };
    },
    derivative: ({ inputs: [x] }, dy, ops) => [ops.reshape(dy, x!.shape)],
    emit: (emission, inputs, node) =>
      emission.node('Reshape', [inputs[0]!, emission.dims(reshapeTarget(node.inputs[0]!.shape, node.shape))]),
  }),

  transpose: primitive<{ perm: readonly number[] }>({
    infer: ([x], { perm }) => {
      requirePermutation(x!, perm);
      return { shape: perm.map(axis => x!.shape[axis]!), dtype: x!.dtype };
    },
    derivative: ({ attributes: { perm } }, dy, ops) => {
      const inverse = perm.map((_, axis) => perm.indexOf(axis));
      return [ops.transpose(dy, inverse)];
    },
    emit: (emission, inputs, node) => emission.node('Transpose', inputs, { perm: node.attributes.perm }),
  }),

  slice: primitive<Range>({
    infer: ([x], { axis, bounds: [start, end] }) => {
      const size = x!.shape[axis]!;
      const length = subDims(end, start);
      const outside = [start, length, subDims(size, end)].some(
        (dim, i) => typeof dim === 'number' && dim < Number(i === 1),
      );
      if (outside) {
        throw new RangeError(`slice: [${start}, ${end}) is empty or outside axis ${axis} of ${showShape(x!.shape)}`);
      }
      return { shape: withDim(x!.shape, axis, length), dtype: x!.dtype };
    },
    derivative: ({ inputs: [x], attributes: { axis, bounds } }, dy, ops) => [
      ops.pad(dy, axis, bounds[0], subDims(x!.shape[axis]!, bounds[1])),
    ],
    emit: (emission, inputs, { attributes: { axis, bounds } }) =>
      emission.node('Slice', [
        inputs[0]!,
        emission.dims([bounds[0]]),
        emission.dims([bounds[1]]),
        emission.dims([axis]),
      ]),
  }),

  // Zeros before and after along one axis.
  pad: primitive<Range>({
    infer: ([x], { axis, bounds: [before, after] }) => ({
      shape: withDim(x!.shape, axis, addDims(before, x!.shape[axis]!, after)),
      dtype: x!.dtype,
    }),
    derivative: ({ inputs: [x], attributes: { axis, bounds } }, dy, ops) => [
      ops.slice(dy, axis, bounds[0], addDims(bounds[0], x!.shape[axis]!)),
    ],
    // Bounds for all axes: with the operator's `axes` input the runtime's transpose optimizer misreads them.
    emit: (emission, inputs, { shape, attributes: { axis, bounds } }) => {
      const pads = bounds.flatMap(bound => shape.map((_, i) => (i === axis ? bound : 0)));
      return emission.node('Pad', [inputs[0]!, emission.dims(pads)]);
    },
  }),

  concat: primitive<{ axis: number }>({
    infer: (inputs, { axis }) => {
      const first = inputs[0]!;
      for (const x of inputs) {
        if (x.dtype !== first.dtype) throw new TypeError(`concat: types differ: ${first.dtype} and ${x.dtype}`);
        if (!sameShape(withDim(x.shape, axis, 1), withDim(first.shape, axis, 1))) {
          const shapes = inputs.map(each => showShape(each.shape)).join(', ');
          throw new RangeError(`concat: shapes differ beside axis ${axis}: ${shapes}`);
        }
      }
      const size = addDims(...inputs.map(x => x.shape[axis]!));
      return { shape: withDim(first.shape, axis, size), dtype: first.dtype };
    },
    derivative: ({ inputs, attributes: { axis } }, dy, ops) => {
      let start: Dim = 0;
      return inputs.map(x => {
        const end = addDims(start, x.shape[axis]!);
        const part = ops.slice(dy, axis, start, end);
        start = end;
        return part;
      });
    },
    emit: (emission, inputs, node) => emission.node('Concat', inputs, { axis: node.attributes.axis }),
  }),

  expand: primitive<{ shape: Shape }>({
    infer: ([x], { shape }) => {
      const target = canonical(shape);
      if (!sameShape(broadcastShapes('expand', x!.shape, target), target)) {
        throw new RangeError(`expand: ${showShape(x!.shape)} does not broadcast to ${showShape(target)}`);
      }
      return { shape: target, dtype: x!.dtype };
    },
    derivative: ({ inputs: [x] }, dy, ops) => [ops.sumTo(dy, x!.shape)],
    emit: (emission, inputs, node) =>
      emission.node('Expand', [inputs[0]!, emission.dims(expandTarget(node.inputs[0]!.shape, node.shape))]),
  }),
};
