import type { Node } from '../graph.ts';
import { sameShape, showShape } from '../shape.ts';
import { primitive, requireDType, requireRank } from './primitive.ts';

/** Swaps the last two axes. */
const swapped = (x: Node) => {
  const axes = x.shape.map((_, i) => i);
  return [...axes.slice(0, -2), axes.length - 1, axes.length - 2];
};

interface GemmAttributes {
  readonly [key: string]: boolean;
  readonly transA: boolean;
  readonly transB: boolean;
}

export const products = {
  // [..., m, k] x [..., k, n] with equal leading dimensions.
  matmul: primitive({
    infer: ([a, b]) => {
      requireDType('matmul', a!, 'float32');
      requireDType('matmul', b!, 'float32');
      const shapes = `${showShape(a!.shape)} x ${showShape(b!.shape)}`;
      const rank = a!.shape.length;
      if (rank < 2 || b!.shape.length !== rank)
        throw new RangeError(`matmul: needs equal ranks of 2 or more: ${shapes}`);
      if (!sameShape(a!.shape.slice(0, -2), b!.shape.slice(0, -2))) {
        throw new RangeError(`matmul: leading dimensions differ: ${shapes}`);
      }
      if (a!.shape[rank - 1] !== b!.shape[rank - 2]) throw new RangeError(`matmul: inner dimensions differ: ${shapes}`);
      return { shape: [...a!.shape.slice(0, -1), b!.shape[rank - 1]!], dtype: 'float32' };
    },
    derivative: ({ inputs: [a, b] }, dy, ops) => [
      ops.matmul(dy, ops.transpose(b!, swapped(b!))),
      ops.matmul(ops.transpose(a!, swapped(a!)), dy),
    ],
    emit: (emission, inputs) => emission.node('MatMul', inputs),
  }),

  // op(a) op(b) + bias, where op transposes if asked; a and b are matrices, the bias a vector over the last axis.
  gemm: primitive<GemmAttributes>({
    infer: ([a, b, bias], { transA, transB }) => {
      requireRank('gemm', a!, 2, 'a');
      requireRank('gemm', b!, 2, 'b');
      for (const x of bias ? [a!, b!, bias] : [a!, b!]) requireDType('gemm', x, 'float32');
      const [m, k] = transA ? [a!.shape[1]!, a!.shape[0]!] : [a!.shape[0]!, a!.shape[1]!];
      const [inner, n] = transB ? [b!.shape[1]!, b!.shape[0]!] : [b!.shape[0]!, b!.shape[1]!];
      const show = (x: Node, transposed: boolean) => `${showShape(x.shape)}${transposed ? ' transposed' : ''}`;
      if (k !== inner) {
        throw new RangeError(`gemm: inner dimensions differ: ${show(a!, transA)} x ${show(b!, transB)}`);
      }
      if (bias && !sameShape(bias.shape, [n])) {
        throw new RangeError(`gemm: the bias is ${showShape(bias.shape)}, the result ${showShape([m, n])}`);
      }
      return { shape: [m, n], dtype: 'float32' };
    },
    derivative: ({ inputs: [a, b, bias], attributes: { transA, transB } }, dy, ops) => [
      transA
        ? ops.gemm(b!, dy, { transA: transB, transB: true })
        : ops.gemm(dy, b!, { transA: false, transB: !transB }),
      transB
        ? ops.gemm(dy, a!, { transA: true, transB: transA })
        : ops.gemm(a!, dy, { transA: !transA, transB: false }),
      bias && ops.reduceSum(dy, [0]),
    ],
    emit: (emission, inputs, { attributes: { transA, transB } }) =>
      emission.node('Gemm', inputs, { transA: Number(transA), transB: Number(transB) }),
  }),
};
