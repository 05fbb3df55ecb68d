import type { Node } from '../graph.ts';
import { scalar } from '../graph.ts';
import { add, concat, expand, mul, rmsNorm, slice, sub } from '../ops.ts';
import type { DecoderConfig } from './families.ts';

/**
 * What the attention of whole sequences (row-attention.ts) and that over a cache (cached-attention.ts) have in common.
 * H query heads, K key/value heads, D head size, R rotated elements of a head.
 */

/** Additive mask value: finite, so that a row of nothing else still has a defined softmax. */
export const MASKED = -1e30;

/** What one layer's attention reads beside its input. */
export interface LayerInputs {
  /** Rotary tables that broadcast to [heads, tokens, R/2]; absent where positions are not marked. */
  readonly rotary?: { readonly cos: Node; readonly sin: Node } | undefined;
  /** [2D] weights of the norms of queries and keys. */
  readonly qkNorm?: Node | undefined;
}

/**
 * Rotary position embedding in the half-split convention of Llama checkpoints (RoFormer, arXiv 2104.09864): the pairs
 * are (x_i, x_{i+R/2}) among the first R elements of a head; the others stay as they are.
 */
export function rotate(x: Node, { cos, sin }: { readonly cos: Node; readonly sin: Node }, headDim: number): Node {
  const half = cos.shape.at(-1) as number;
  const first = slice(x, -1, 0, half);
  const second = slice(x, -1, half, 2 * half);
  const rest = 2 * half < headDim ? [slice(x, -1, 2 * half, headDim)] : [];
  return concat([sub(mul(first, cos), mul(second, sin)), add(mul(second, cos), mul(first, sin)), ...rest], -1);
}

/** Weights of `rmsNorm` from a stored norm vector. */
export function normWeight(config: DecoderConfig, stored: Node): Node {
  return config.normOffset === 0 ? stored : add(stored, scalar(config.normOffset));
}

/** Normalises each query and key head. x [..., H+K, tokens, D], stored [2D] */
export function normHeads(config: DecoderConfig, x: Node, stored: Node): Node {
  const { heads, kvHeads, headDim } = config;
  const weight = normWeight(config, stored);
  const ofHeads = (start: number, count: number) =>
    expand(slice(weight, 0, start, start + headDim), [count, 1, headDim]);
  return rmsNorm(x, concat([ofHeads(0, heads), ofHeads(headDim, kvHeads)], 0), config.rmsNormEps);
}
