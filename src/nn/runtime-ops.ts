import { constant, createNode, type Dim, type Node, type Shape, type Signature, scalar } from './graph.ts';
import { abs, div, mul, reduceMax, reshape, transpose } from './ops.ts';
import type { OperatorAttributes } from './primitives/operator.ts';
import { type OnnxAttribute, requireDType, requireRank } from './primitives/primitive.ts';
import { addDims, sameShape, showShape } from './shape.ts';

/**
 * Operators of the runtime that do in one pass what `ops.ts` says in several. A decode step of a small model takes as
 * long as it has operators; training needs derivatives, which these do not have.
 */

interface OperatorSpec {
  readonly domain?: OperatorAttributes['domain'];
  readonly attributes?: Readonly<Record<string, OnnxAttribute>>;
  readonly sizes?: readonly Dim[];
}

/** One node for each result that has a signature; undefined ones are skipped. */
function operator(
  type: string,
  inputs: readonly Node[],
  { domain = '', attributes = {}, sizes = [] }: OperatorSpec,
  results: readonly (Signature | undefined)[],
): Node[] {
  const common = { type, domain, attributes: JSON.stringify(attributes), sizes, results: results.length };
  return results.flatMap((signature, result) =>
    signature ? [createNode('operator', inputs, { ...common, result, ...signature }, signature)] : [],
  );
}

const float = (shape: Shape): Signature => ({ shape, dtype: 'float32' });
const MICROSOFT = 'com.microsoft';

function requireFloats(op: string, ...nodes: readonly Node[]): void {
  for (const node of nodes) requireDType(op, node, 'float32');
}

/** Parts of the last axis, one of each size. */
export function splitLast(x: Node, sizes: readonly Dim[]): Node[] {
  const last = x.shape.at(-1);
  if (addDims(...sizes) !== last) throw new RangeError(`splitLast: [${sizes}] do not add up to ${showShape(x.shape)}`);
  const parts = sizes.map(size => ({ shape: [...x.shape.slice(0, -1), size], dtype: x.dtype }));
  return operator('Split', [x], { attributes: { axis: x.shape.length - 1 }, sizes }, parts);
}

function requireVector(op: string, x: Node, weight: Node): void {
  requireFloats(op, x, weight);
  if (!sameShape(weight.shape, x.shape.slice(-1))) {
    throw new RangeError(`${op}: the weight is ${showShape(weight.shape)}, x ${showShape(x.shape)}`);
  }
}

/** x / sqrt(mean(x²) + eps) · weight over the last axis: `rmsNorm` of ops.ts. */
export function normalize(x: Node, weight: Node, eps: number): Node {
  requireVector('normalize', x, weight);
  const attributes = { axis: x.shape.length - 1, epsilon: { float: eps } };
  return operator('SimplifiedLayerNormalization', [x, weight], { attributes }, [float(x.shape)])[0]!;
}

/** The sum of two matrices [N, d], and its `normalize`. */
export function addNormalize(
  x: Node,
  y: Node,
  weight: Node,
  eps: number,
): { readonly sum: Node; readonly normed: Node } {
  requireVector('addNormalize', x, weight);
  requireVector('addNormalize', y, weight);
  const spec: OperatorSpec = { domain: MICROSOFT, attributes: { epsilon: { float: eps } } };
  // In between are the mean and the inverse deviation, which the kernel does not fill.
  const results = [float(x.shape), undefined, undefined, float(x.shape)];
  const [normed, sum] = operator('SkipSimplifiedLayerNormalization', [x, y, weight], spec, results);
  return { sum: sum!, normed: normed! };
}

/** x · sigmoid(x) */
export function fusedSilu(x: Node): Node {
  requireFloats('fusedSilu', x);
  return operator('QuickGelu', [x], { domain: MICROSOFT, attributes: { alpha: { float: 1 } } }, [float(x.shape)])[0]!;
}

/** `geluTanh` of ops.ts. */
export function fusedGeluTanh(x: Node): Node {
  requireFloats('fusedGeluTanh', x);
  return operator('FastGelu', [x], { domain: MICROSOFT }, [float(x.shape)])[0]!;
}

/**
 * Rotary embedding, half-split, of the first R elements of every head.
 * @param x [B, C, heads·D]
 * @param positions int64 [B, C]: rows of the tables, which the operator does not check
 * @param tables [S, R/2] each
 */
export function rotaryEmbedding(
  x: Node,
  positions: Node,
  { cos, sin }: { readonly cos: Node; readonly sin: Node },
  { heads, headDim }: { readonly heads: number; readonly headDim: number },
): Node {
  requireFloats('rotaryEmbedding', x, cos, sin);
  requireDType('rotaryEmbedding', positions, 'int64');
  if (!sameShape(positions.shape, x.shape.slice(0, 2)) || x.shape[2] !== heads * headDim) {
    throw new RangeError(
      `rotaryEmbedding: x is ${showShape(x.shape)}, positions ${showShape(positions.shape)}, ${heads} heads of ${headDim}`,
    );
  }
  const rotated = 2 * (cos.shape[1] as number);
  const attributes = { num_heads: heads, rotary_embedding_dim: rotated === headDim ? 0 : rotated };
  return operator('RotaryEmbedding', [x, positions, cos, sin], { domain: MICROSOFT, attributes }, [float(x.shape)])[0]!;
}

/** factor · a bᵀ over the last two axes: a [..., m, k], b [..., n, k] → [..., m, n], equal leading dimensions. */
export function scaledScores(a: Node, b: Node, factor: number): Node {
  requireFloats('scaledScores', a, b);
  const [m, k] = a.shape.slice(-2);
  const [n, inner] = b.shape.slice(-2);
  if (k !== inner || !sameShape(a.shape.slice(0, -2), b.shape.slice(0, -2))) {
    throw new RangeError(`scaledScores: shapes do not fit: ${showShape(a.shape)} x ${showShape(b.shape)} transposed`);
  }
  const spec: OperatorSpec = { domain: MICROSOFT, attributes: { transB: 1, alpha: { float: factor } } };
  return operator('FusedMatMul', [a, b], spec, [float([...a.shape.slice(0, -2), m!, n!])])[0]!;
}

/** x [B, N, W], index int64 [B] → [B, W]: one block of each row. */
export function gatherBlock(x: Node, index: Node): Node {
  requireDType('gatherBlock', index, 'int64');
  requireRank('gatherBlock', x, 3, 'x');
  if (!sameShape(index.shape, x.shape.slice(0, 1))) {
    throw new RangeError(`gatherBlock: x is ${showShape(x.shape)}, the index ${showShape(index.shape)}`);
  }
  const shape = [x.shape[0]!, x.shape[2]!];
  const inputs = [x, reshape(index, [x.shape[0]!, 1])];
  return operator('GatherND', inputs, { attributes: { batch_dims: 1 } }, [{ shape, dtype: x.dtype }])[0]!;
}

/** Quantised values lie in ±127. */
const LEVELS = 127;
const ZERO_POINT = 128;

export interface QuantizedMatrix {
  /** int8 [in, out] */
  readonly values: Node;
  /** [out]: what one level of a column is worth. */
  readonly scales: Node;
}

/**
 * Weights w [out, in] in 8 bits, symmetric per output: values = round(w / s), s = max|w| / 127 of the row. Ties go to
 * the even number; a row of zeros has scale 0.
 */
export function quantizeWeights(w: Node): QuantizedMatrix {
  requireFloats('quantizeWeights', w);
  requireRank('quantizeWeights', w, 2, 'w');
  const largest = reduceMax(abs(w), [1], true);
  const spec: OperatorSpec = { attributes: { output_dtype: 3 } };
  const shares = div(w, largest);
  const [values] = operator('QuantizeLinear', [shares, scalar(1 / LEVELS)], spec, [{ shape: w.shape, dtype: 'int8' }]);
  return { values: transpose(values!, [1, 0]), scales: mul(reduceMax(abs(w), [1]), scalar(1 / LEVELS)) };
}

/**
 * x [N, in] times quantised weights → [N, out]. Each row of x is quantised by its own largest magnitude as the weights
 * are, the integers are multiplied exactly, and the result is scaled: what a row gets does not depend on the others.
 */
export function quantizedLinear(x: Node, { values, scales }: QuantizedMatrix): Node {
  requireFloats('quantizedLinear', x, scales);
  requireDType('quantizedLinear', values, 'int8');
  const [inner, out] = values.shape;
  if (x.shape[1] !== inner || !sameShape(scales.shape, [out!])) {
    throw new RangeError(
      `quantizedLinear: x is ${showShape(x.shape)}, values ${showShape(values.shape)}, scales ${showShape(scales.shape)}`,
    );
  }
  const largest = reduceMax(abs(x), [1], true);
  const zero = constant(Uint8Array.of(ZERO_POINT), []);
  // Of a row of zeros these are NaN and its quantised values arbitrary; multiplied by 0 below.
  const shares = div(x, largest);
  const [levels] = operator('QuantizeLinear', [shares, scalar(1 / LEVELS), zero], {}, [
    { shape: x.shape, dtype: 'uint8' },
  ]);
  const inputs = [levels!, values, scalar(1 / LEVELS), scales, zero];
  const [product] = operator('MatMulIntegerToFloat', inputs, { domain: MICROSOFT }, [float([x.shape[0]!, out!])]);
  return mul(product!, largest);
}
