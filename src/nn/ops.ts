import type { FrozenDType } from './frozen.ts';
import {
  type Attributes,
  createNode,
  type Dim,
  type DType,
  type Node,
  type PrimitiveName,
  type Shape,
  scalar,
} from './graph.ts';
import { primitives } from './primitives/table.ts';
import { axisOf, broadcastShapes, mulDims, sameShape, showShape, sizeOf } from './shape.ts';

/**
 * Builders of graph nodes. Every builder checks shapes and types and throws a RangeError or TypeError that names the
 * operation and the shapes. Float operations broadcast as in NumPy; a symbolic dimension broadcasts only against an
 * equal one or 1. Negative axes count from the end.
 */

function apply(op: PrimitiveName, inputs: readonly Node[], attributes: Attributes = {}): Node {
  return createNode(op, inputs, attributes, primitives[op].infer(inputs, attributes));
}

/** Drops an `expand` that the broadcasting of the operation itself makes superfluous. */
function broadcasting(op: PrimitiveName, inputs: readonly Node[]): Node {
  const shape = broadcastShapes(op, ...inputs.map(x => x.shape));
  const bare = [...inputs];
  for (const [i, x] of bare.entries()) {
    if (x.op !== 'expand') continue;
    const shapes = bare.map((other, j) => (i === j ? x.inputs[0]! : other).shape);
    if (sameShape(broadcastShapes(op, ...shapes), shape)) bare[i] = x.inputs[0]!;
  }
  return apply(op, bare);
}

export const add = (a: Node, b: Node): Node => broadcasting('add', [a, b]);
export const sub = (a: Node, b: Node): Node => broadcasting('sub', [a, b]);
export const mul = (a: Node, b: Node): Node => broadcasting('mul', [a, b]);
export const div = (a: Node, b: Node): Node => broadcasting('div', [a, b]);
/** Where a = b the gradient goes to a; also for `max`. */
export const min = (a: Node, b: Node): Node => broadcasting('min', [a, b]);
export const max = (a: Node, b: Node): Node => broadcasting('max', [a, b]);

export const less = (a: Node, b: Node): Node => broadcasting('less', [a, b]);
export const lessEqual = (a: Node, b: Node): Node => broadcasting('lessEqual', [a, b]);
export const greater = (a: Node, b: Node): Node => broadcasting('greater', [a, b]);
export const equal = (a: Node, b: Node): Node => broadcasting('equal', [a, b]);
export const and = (a: Node, b: Node): Node => broadcasting('and', [a, b]);
export const or = (a: Node, b: Node): Node => broadcasting('or', [a, b]);
export const not = (x: Node): Node => apply('not', [x]);
/** a where the boolean condition holds, else b, for values and gradients: NaN in the other branch cannot leak. */
export const where = (condition: Node, a: Node, b: Node): Node => broadcasting('where', [condition, a, b]);

export const neg = (x: Node): Node => apply('neg', [x]);
export const exp = (x: Node): Node => apply('exp', [x]);
export const log = (x: Node): Node => apply('log', [x]);
export const sqrt = (x: Node): Node => apply('sqrt', [x]);
export const reciprocal = (x: Node): Node => apply('reciprocal', [x]);
/** The gradient at 0 is 0. */
export const abs = (x: Node): Node => apply('abs', [x]);
/** -1, 0 or 1; no gradient. */
export const sign = (x: Node): Node => apply('sign', [x]);
export const tanh = (x: Node): Node => apply('tanh', [x]);
export const sigmoid = (x: Node): Node => apply('sigmoid', [x]);
/** log(1 + exp(x)), overflow-safe. */
export const softplus = (x: Node): Node => apply('softplus', [x]);
export const silu = (x: Node): Node => apply('silu', [x]);
/** x · Φ(x) with the tanh approximation of Φ (Hendrycks & Gimpel, arXiv 1606.08415). */
export function geluTanh(x: Node): Node {
  const inner = mul(x, add(mul(square(x), scalar(0.044715 * Math.sqrt(2 / Math.PI))), scalar(Math.sqrt(2 / Math.PI))));
  return mul(mul(x, scalar(0.5)), add(tanh(inner), scalar(1)));
}
/** cap · tanh(x / cap): nearly x where x is small, and never beyond ±cap. */
export const softCap = (x: Node, cap: number): Node => mul(tanh(mul(x, scalar(1 / cap))), scalar(cap));
export const square = (x: Node): Node => mul(x, x);
/** The gradient passes at and inside the bounds and is 0 outside. */
export const clamp = (x: Node, low: number, high: number): Node => max(min(x, scalar(high)), scalar(low));

/** No gradient flows through a cast that changes the type. */
export const cast = (x: Node, dtype: DType): Node => (x.dtype === dtype ? x : apply('cast', [x], { dtype }));
/** The value without its gradient. */
export const stopGradient = (x: Node): Node => apply('stopGradient', [x]);

/** The value of `value`, with the gradient of `path`, which is not computed on the way forward. */
export const straightThrough = (value: Node, path: Node): Node => apply('straightThrough', [value, path]);

/** [..., m, k] x [..., k, n] → [..., m, n], equal leading dimensions. */
export const matmul = (a: Node, b: Node): Node => apply('matmul', [a, b]);
/** a [m, k], b [k, n] (each transposed if asked) → [m, n]. */
export const gemm = (a: Node, b: Node, { transA, transB }: { transA: boolean; transB: boolean }): Node =>
  apply('gemm', [a, b], { transA, transB });
/** x [N, in], w [out, in] (the checkpoint's layout), bias [out] → [N, out]. */
export const linear = (x: Node, w: Node, bias?: Node): Node =>
  apply('gemm', bias ? [x, w, bias] : [x, w], { transA: false, transB: true });

/** A matrix of frozen.ts as nodes. */
export interface FrozenNodes {
  readonly dtype: FrozenDType;
  /** [rows, columns] = [out, in] */
  readonly shape: readonly [number, number];
  readonly values: Node;
  readonly scales: Node;
}
/** For derivatives; `frozenLinear` is the way forward. */
export const frozenProduct = (x: Node, values: Node, scales: Node, spec: Attributes): Node =>
  apply('frozenProduct', [x, values, scales], spec);
/** x [N, in], w [out, in] in 8 or 4 bits → [N, out], in float32. The gradient goes to x alone. */
export const frozenLinear = (x: Node, { dtype, shape: [rows, columns], values, scales }: FrozenNodes): Node =>
  frozenProduct(x, values, scales, { dtype, rows, columns, back: false });

export const reshape = (x: Node, shape: Shape): Node =>
  sameShape(x.shape, shape) ? x : apply('reshape', [x], { shape });
export const transpose = (x: Node, perm: readonly number[]): Node =>
  perm.length === x.shape.length && perm.every((axis, i) => axis === i) ? x : apply('transpose', [x], { perm });
/** Elements [start, end) along one axis; both may be symbolic. */
export function slice(x: Node, axis: number, start: Dim, end: Dim): Node {
  const at = axisOf('slice', axis, x.shape);
  return start === 0 && end === x.shape[at] ? x : apply('slice', [x], { axis: at, bounds: [start, end] });
}
/** Zeros before and after along one axis. */
export function pad(x: Node, axis: number, before: Dim, after: Dim): Node {
  const at = axisOf('pad', axis, x.shape);
  return before === 0 && after === 0 ? x : apply('pad', [x], { axis: at, bounds: [before, after] });
}
export function concat(xs: readonly Node[], axis: number): Node {
  if (xs.length === 0) throw new RangeError('concat: nothing to concatenate');
  return xs.length === 1 ? xs[0]! : apply('concat', xs, { axis: axisOf('concat', axis, xs[0]!.shape) });
}
export const expand = (x: Node, shape: Shape): Node =>
  sameShape(x.shape, shape) ? x : apply('expand', [x], { shape });
/** A constant value in every element. */
export const full = (value: number, shape: Shape): Node => expand(scalar(value), shape);
/** The value of a dimension as a float32 scalar. */
export const dimension = (dim: Dim): Node =>
  typeof dim === 'number' ? scalar(dim) : apply('dimension', [], { dims: [dim] });

/** x [R, ...], index int64 [P...] → [P..., ...], or along another axis. Indices may repeat: the gradient adds up. */
export const gatherRows = (x: Node, index: Node, axis = 0): Node => apply('gatherRows', [x, index], { axis });
/** index int64 [P], updates [P, d] → [rows, d]: row r is the sum of the updates whose index is r. */
export const scatterAddRows = (index: Node, updates: Node, rows: Dim): Node =>
  apply('scatterAddRows', [index, updates], { rows: [rows] });
/** Where `spread` puts the rows of its argument, told twice: from the places, and from the rows. */
export interface Spread {
  /** int64 [M] the row at each place; any row at a place that is not used. */
  readonly places: Node;
  /** int64 [N] one place of each row. */
  readonly own: Node;
  /** int64 [E, R] lines of further places, filled up with places that are not used. */
  readonly extra: Node;
  /** int64 [N] the line of `extra` that a row has; any where it has none. */
  readonly line: Node;
  /** float32 [N, 1] 1 where a row has such a line, else 0. */
  readonly repeated: Node;
}
/**
 * x [h, N, d] → [h, M, d]: a row at each place, some at several. `gatherRows` along axis 1, with a derivative that
 * gathers the gradients of a row's places instead of scattering them, which is slow. It is exact when the gradient at
 * unused places is zero, as it is where attention masks them.
 */
export const spread = (x: Node, { places, own, extra, line, repeated }: Spread): Node =>
  apply('spread', [x, places, own, extra, line, repeated]);
/** x [..., V], index int64 [...] → [...]: one element of the last axis each. */
export const takeLast = (x: Node, index: Node): Node => apply('takeLast', [x, index]);
/** index int64 [...], values [...] → [..., size]: the values at their indices, zero elsewhere, or added to `onto`. */
export const putLast = (index: Node, values: Node, size: Dim, onto?: Node): Node =>
  apply('putLast', onto ? [index, values, onto] : [index, values], { size: [size] });

/** Every axis if none are named. */
function reduction(
  op: 'reduceSum' | 'reduceMax',
  x: Node,
  axes: readonly number[] | undefined,
  keepDims: boolean,
): Node {
  const resolved = (axes ?? x.shape.map((_, i) => i)).map(axis => axisOf(op, axis, x.shape)).sort((a, b) => a - b);
  if (new Set(resolved).size < resolved.length) {
    throw new RangeError(`${op}: an axis is named twice: [${axes}] of ${showShape(x.shape)}`);
  }
  return resolved.length === 0 ? x : apply(op, [x], { axes: resolved, keepDims });
}
export const reduceSum = (x: Node, axes?: readonly number[], keepDims = false): Node =>
  reduction('reduceSum', x, axes, keepDims);
/** Equal maxima share the gradient. */
export const reduceMax = (x: Node, axes?: readonly number[], keepDims = false): Node =>
  reduction('reduceMax', x, axes, keepDims);
export function mean(x: Node, axes?: readonly number[], keepDims = false): Node {
  const count = axes ? mulDims(...axes.map(axis => x.shape[axisOf('mean', axis, x.shape)]!)) : sizeOf(x.shape);
  const sum = reduceSum(x, axes, keepDims);
  return typeof count === 'number' ? mul(sum, scalar(1 / count)) : div(sum, dimension(count));
}
/** Sums over the axes along which `shape` was broadcast to x's shape. */
export function sumTo(x: Node, shape: Shape): Node {
  const lead = x.shape.length - shape.length;
  const leading = Array.from({ length: lead }, (_, axis) => axis);
  const rest = reduceSum(x, leading);
  const stretched = shape.flatMap((dim, i) => (dim === 1 && rest.shape[i] !== 1 ? [i] : []));
  return reduceSum(rest, stretched, true);
}

/** These work on the last axis. */
export const softmax = (x: Node): Node => apply('softmax', [x]);
export const logSoftmax = (x: Node): Node => apply('logSoftmax', [x]);
export const cumsum = (x: Node, { reverse = false }: { reverse?: boolean } = {}): Node =>
  apply('cumsum', [x], { reverse });
/** [..., V] → int64 [...]: the first of equal maxima; no gradient. */
export const argmax = (x: Node): Node => apply('argmax', [x]);
/** sqrt(mean(x²) + eps) over the last axis: [..., d] → [..., 1]. */
export const rms = (x: Node, eps: number): Node => apply('rms', [x], { eps });
/** x / sqrt(mean(x²) + eps) · weight over the last axis: x [..., d], weight [d] (Zhang & Sennrich 2019). */
export const rmsNorm = (x: Node, weight: Node, eps: number): Node => mul(div(x, rms(x, eps)), weight);
