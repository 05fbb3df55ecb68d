import { type Bindings, canonical, type Dim, type Shape, showShape, sizeOf } from './shape.ts';

export type { Bindings, Dim, Shape };

/** The graph: immutable typed nodes that point at their inputs. There is no graph object; outputs are the graph. */
export type DType = 'float32' | 'int64' | 'int32' | 'int8' | 'uint8' | 'bool';

/** Every primitive. `primitives/table.ts` holds the rules of each; builders are in `ops.ts`. */
export const PRIMITIVES = [
  'input',
  'constant',
  'dimension',
  'add',
  'sub',
  'mul',
  'div',
  'min',
  'max',
  'less',
  'lessEqual',
  'greater',
  'equal',
  'and',
  'or',
  'not',
  'where',
  'neg',
  'exp',
  'log',
  'sqrt',
  'reciprocal',
  'abs',
  'sign',
  'tanh',
  'sigmoid',
  'silu',
  'softplus',
  'cast',
  'stopGradient',
  'straightThrough',
  'matmul',
  'gemm',
  'frozenProduct',
  'reshape',
  'transpose',
  'slice',
  'pad',
  'concat',
  'expand',
  'gatherRows',
  'scatterAddRows',
  'spread',
  'takeLast',
  'putLast',
  'reduceSum',
  'reduceMax',
  'argmax',
  'cumsum',
  'rms',
  'softmax',
  'logSoftmax',
  'operator',
] as const;
export type PrimitiveName = (typeof PRIMITIVES)[number];

export type ConstantData = Float32Array | BigInt64Array | Int32Array | Int8Array | Uint8Array;
export type AttributeValue = number | string | boolean | readonly Dim[] | ConstantData;
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface Node<A extends Attributes = Attributes> {
  /** Creation order: an input of a node always has a smaller id. */
  readonly id: number;
  readonly op: PrimitiveName;
  readonly inputs: readonly Node[];
  readonly attributes: A;
  readonly shape: Shape;
  readonly dtype: DType;
  /** The call of `recomputed` that made it. */
  readonly region?: number | undefined;
}

export interface Signature {
  readonly shape: Shape;
  readonly dtype: DType;
}

let created = 0;
let regions = 0;
let region: number | undefined;

/**
 * Values of the nodes that `build` makes are not kept for the way back: there `gradients` computes them anew from the
 * values that came in from outside, one region after another (Chen et al., "Training deep nets with sublinear memory
 * cost", 2016). Inside another such call it is part of that one.
 */
export function recomputed<T>(build: () => T): T {
  if (region !== undefined) return build();
  region = regions++;
  try {
    return build();
  } finally {
    region = undefined;
  }
}

/** For `ops.ts` and this file: everyone else builds nodes through builders, which check. */
export function createNode(
  op: PrimitiveName,
  inputs: readonly Node[],
  attributes: Attributes,
  { shape, dtype }: Signature,
): Node {
  return Object.freeze({ id: created++, op, inputs, attributes, shape, dtype, region });
}

/** A tensor fed when the model runs (data, weights). */
export function input(name: string, shape: Shape, dtype: DType = 'float32'): Node {
  if (name === '') throw new RangeError('input: the name is empty');
  for (const dim of shape) {
    if (typeof dim === 'number' && !(Number.isInteger(dim) && dim >= 1)) {
      throw new RangeError(`input "${name}": dimension ${dim} of ${showShape(shape)} is not a positive integer`);
    }
  }
  return createNode('input', [], { name }, { shape: canonical(shape), dtype });
}

/** Fixed data, stored in the model. The array must not change afterwards. */
export function constant(data: ConstantData, shape: Shape): Node {
  if (sizeOf(shape) !== data.length) {
    throw new RangeError(`constant: ${data.length} values do not fill ${showShape(shape)}`);
  }
  return createNode('constant', [], { data }, { shape, dtype: dtypeOf(data) });
}

/** Bytes are uint8; a bool constant does not exist. */
export function dtypeOf(data: ConstantData): DType {
  if (data instanceof Float32Array) return 'float32';
  if (data instanceof BigInt64Array) return 'int64';
  if (data instanceof Int32Array) return 'int32';
  return data instanceof Int8Array ? 'int8' : 'uint8';
}

/** A float32 scalar. */
export function scalar(value: number): Node {
  return constant(Float32Array.of(value), []);
}
