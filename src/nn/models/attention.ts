import type { Dim, Node } from '../graph.ts';
import { scalar } from '../graph.ts';
import {
  add,
  concat,
  div,
  exp,
  matmul,
  max,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  slice,
  softmax,
  sub,
  transpose,
} from '../ops.ts';
import { mulDims } from '../shape.ts';
import type { DecoderConfig } from './families.ts';

/**
 * Grouped-query attention in two forms: over whole padded sequences (training), and over a chunk of new tokens beside
 * a cache of earlier keys and values (sampling). B rows, T sequence length, C chunk length, L cache length,
 * H query heads, K key/value heads, G = H / K, D head size.
 */

/** Additive mask value: finite, so that a row of nothing else still has a defined softmax. */
export const MASKED = -1e30;

/** Length of a chunk of new tokens: the symbol C, or one token. */
export type Chunk = 'C' | 1;

interface Heads {
  /** [B, K, G*C, D], scaled by 1/sqrt(D) */
  readonly query: Node;
  /** [B, K, C, D] */
  readonly key: Node;
  readonly value: Node;
}

/**
 * Rotary position embedding in the half-split convention of Llama checkpoints (RoFormer, arXiv 2104.09864):
 * the pairs are (x_i, x_{i+D/2}). `cos`, `sin` broadcast to [B, heads, C, D/2].
 */
function rotate(x: Node, cos: Node, sin: Node, headDim: number): Node {
  const half = headDim / 2;
  const first = slice(x, 3, 0, half);
  const second = slice(x, 3, half, headDim);
  return concat([sub(mul(first, cos), mul(second, sin)), add(mul(second, cos), mul(first, sin))], 3);
}

/** Splits fused projections [B*C, (H+2K)*D] into rotated queries and keys, and values. */
function splitHeads(config: DecoderConfig, qkv: Node, rows: string, length: Dim, cos: Node, sin: Node): Heads {
  const { heads, kvHeads, headDim } = config;
  const all = transpose(reshape(qkv, [rows, length, heads + 2 * kvHeads, headDim]), [0, 2, 1, 3]);
  const rotated = rotate(slice(all, 1, 0, heads + kvHeads), cos, sin, headDim);
  const query = mul(slice(rotated, 1, 0, heads), scalar(1 / Math.sqrt(headDim)));
  return {
    query: reshape(query, [rows, kvHeads, mulDims(heads / kvHeads, length), headDim]),
    key: slice(rotated, 1, heads, heads + kvHeads),
    value: slice(all, 1, heads + kvHeads, heads + 2 * kvHeads),
  };
}

/** [B, K, G*C, D] -> [B*C, H*D] */
function mergeHeads(config: DecoderConfig, context: Node, rows: string, length: Dim): Node {
  const { heads, headDim } = config;
  const byHead = transpose(reshape(context, [rows, heads, length, headDim]), [0, 2, 1, 3]);
  return reshape(byHead, [mulDims(rows, length), heads * headDim]);
}

/**
 * Causal attention over whole sequences.
 * @param qkv [B*T, (H+2K)*D] padded rows
 * @param cos, sin [T, D/2]
 * @param mask [T, T] additive
 * @returns [B*T, H*D]
 */
export function sequenceAttention(config: DecoderConfig, qkv: Node, cos: Node, sin: Node, mask: Node): Node {
  const { heads, kvHeads } = config;
  const group = heads / kvHeads;
  const { query, key, value } = splitHeads(config, qkv, 'B', 'T', cos, sin);
  const scores = matmul(query, transpose(key, [0, 1, 3, 2]));
  const masked = add(reshape(scores, ['B', kvHeads, group, 'T', 'T']), mask);
  const weights = reshape(softmax(masked), ['B', kvHeads, mulDims(group, 'T'), 'T']);
  return mergeHeads(config, matmul(weights, value), 'B', 'T');
}

/**
 * Attention of a chunk of C new tokens a row over L cached ones and the chunk itself. Cached and new scores are
 * computed apart, so that the cache is never copied.
 * @param qkv [B*C, (H+2K)*D]
 * @param cos, sin [B, 1, C, D/2]
 * @param pastKey, pastValue [B, K, L, D]
 * @param pastMask [B, 1, 1, 1, L] additive
 * @param chunkMask [C, C] additive
 */
export function cachedAttention(
  config: DecoderConfig,
  qkv: Node,
  cos: Node,
  sin: Node,
  past: { readonly key: Node; readonly value: Node; readonly mask: Node; readonly chunkMask: Node },
  chunk: Chunk,
): { readonly output: Node; readonly key: Node; readonly value: Node } {
  const { heads, kvHeads } = config;
  const group = heads / kvHeads;
  const { query, key, value } = splitHeads(config, qkv, 'B', chunk, cos, sin);
  const scores = (keys: Node, mask: Node, length: Dim) =>
    add(reshape(matmul(query, transpose(keys, [0, 1, 3, 2])), ['B', kvHeads, group, chunk, length]), mask);
  const pastScores = scores(past.key, past.mask, 'L');
  const newScores = scores(key, past.chunkMask, chunk);
  // One softmax over both parts without joining them.
  const highest = max(reduceMax(pastScores, [4], true), reduceMax(newScores, [4], true));
  const pastWeights = exp(sub(pastScores, highest));
  const newWeights = exp(sub(newScores, highest));
  const total = add(reduceSum(pastWeights, [4], true), reduceSum(newWeights, [4], true));
  const rows = mulDims(group, chunk);
  const mixed = add(
    matmul(reshape(pastWeights, ['B', kvHeads, rows, 'L']), past.value),
    matmul(reshape(newWeights, ['B', kvHeads, rows, chunk]), value),
  );
  const context = div(mixed, reshape(total, ['B', kvHeads, rows, 1]));
  return { output: mergeHeads(config, context, 'B', chunk), key, value };
}
