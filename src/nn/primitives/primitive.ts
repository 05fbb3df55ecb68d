import type { Attributes, Dim, DType, Node, Shape, Signature } from '../graph.ts';
import { broadcastShapes } from '../shape.ts';

/**
 * All rules of one primitive: the shape and type of its result, its derivative, its ONNX operators.
 *
 * `derivative` gives the gradient for each input (undefined: none flows there), built with the operations handed in.
 * 'none' says that the result does not depend differentiably on any input: integer and boolean results, step
 * functions, and `stopGradient`.
 */
export interface Primitive<A extends Attributes = Attributes> {
  readonly infer: (inputs: readonly Node[], attributes: A) => Signature;
  readonly derivative: 'none' | Derivative<A>;
  /** Writes the operators and returns the name of the result; `inputs` are the names of the node's inputs. */
  readonly emit: (emission: Emission, inputs: readonly string[], node: Node<A>) => string;
}

export type Derivative<A extends Attributes = Attributes> = (
  node: Node<A>,
  gradient: Node,
  ops: Algebra,
) => readonly (Node | undefined)[];

/** Forgets the attribute type, so that primitives fit one table; nodes are only built with attributes of that type. */
export function primitive<A extends Attributes>(rules: Primitive<A>): Primitive {
  return rules as unknown as Primitive;
}

/** What rules write ONNX with. Values are named; equal operators on equal values are written once. */
export interface Emission {
  /**
   * Adds one operator and returns the name of its result; of several results the first, the others are that name with
   * `:1`, `:2`, … behind it.
   */
  node(
    operator: string,
    inputs: readonly string[],
    attributes?: Readonly<Record<string, OnnxAttribute>>,
    options?: OperatorOptions,
  ): string;
  /** An int64 vector: a constant where all dims are numbers, else a graph input filled from the bound symbols. */
  dims(dims: readonly Dim[]): string;
  /** A float32 scalar constant. */
  scalar(value: number): string;
  data(node: Node): string;
}
export type OnnxAttribute = number | string | readonly number[] | { readonly float: number };

export interface OperatorOptions {
  /** The operator set that defines it: the standard's when not given. */
  readonly domain?: 'com.microsoft' | undefined;
  /** Number of results; 1 when not given. */
  readonly results?: number | undefined;
}

/** The operations that derivative rules are written in; `ops.ts` provides them. */
export interface Algebra {
  add(a: Node, b: Node): Node;
  sub(a: Node, b: Node): Node;
  mul(a: Node, b: Node): Node;
  div(a: Node, b: Node): Node;
  neg(x: Node): Node;
  exp(x: Node): Node;
  sign(x: Node): Node;
  sigmoid(x: Node): Node;
  lessEqual(a: Node, b: Node): Node;
  greater(a: Node, b: Node): Node;
  equal(a: Node, b: Node): Node;
  where(condition: Node, a: Node, b: Node): Node;
  cast(x: Node, dtype: DType): Node;
  matmul(a: Node, b: Node): Node;
  gemm(a: Node, b: Node, options: { transA: boolean; transB: boolean }): Node;
  frozenProduct(x: Node, values: Node, scales: Node, spec: Attributes): Node;
  reshape(x: Node, shape: Shape): Node;
  transpose(x: Node, perm: readonly number[]): Node;
  slice(x: Node, axis: number, start: Dim, end: Dim): Node;
  pad(x: Node, axis: number, before: Dim, after: Dim): Node;
  expand(x: Node, shape: Shape): Node;
  gatherRows(x: Node, index: Node, axis?: number): Node;
  scatterAddRows(index: Node, updates: Node, rows: Dim): Node;
  takeLast(x: Node, index: Node): Node;
  putLast(index: Node, values: Node, size: Dim): Node;
  reduceSum(x: Node, axes?: readonly number[], keepDims?: boolean): Node;
  cumsum(x: Node, options?: { reverse?: boolean }): Node;
  /** Sums over the axes along which `shape` was broadcast to x's shape. */
  sumTo(x: Node, shape: Shape): Node;
}

export function requireDType(op: string, node: Node, ...allowed: readonly DType[]): void {
  if (!allowed.includes(node.dtype)) {
    throw new TypeError(`${op}: needs ${allowed.join(' or ')}, got ${node.dtype} [${node.shape.join(',')}]`);
  }
}

export function requireRank(op: string, node: Node, rank: number, name: string): void {
  if (node.shape.length !== rank) {
    throw new RangeError(`${op}: ${name} needs ${rank} axes, got [${node.shape.join(',')}]`);
  }
}

/** Result of an elementwise operation on inputs of one common type. */
export function elementwise(op: string, inputs: readonly Node[], ...allowed: readonly DType[]): Signature {
  for (const node of inputs) requireDType(op, node, ...allowed);
  const types = new Set(inputs.map(node => node.dtype));
  if (types.size > 1) throw new TypeError(`${op}: types differ: ${inputs.map(node => node.dtype).join(' and ')}`);
  return { shape: broadcastShapes(op, ...inputs.map(node => node.shape)), dtype: inputs[0]!.dtype };
}
