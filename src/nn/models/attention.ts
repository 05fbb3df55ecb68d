import type { Dim, Node } from '../graph.ts';
import { scalar } from '../graph.ts';
import {
  add,
  concat,
  div,
  exp,
  expand,
  matmul,
  max,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  rmsNorm,
  slice,
  softCap,
  sub,
  transpose,
} from '../ops.ts';
import { mulDims } from '../shape.ts';
import type { DecoderConfig } from './families.ts';

/**
 * Grouped-query attention of a chunk of new tokens beside a cache of earlier keys and values (sampling), and what it
 * has in common with that of whole sequences (row-attention.ts). B rows, C chunk length, L cache length, H query heads, K key/value heads, G = H / K, D head size, R rotated elements of a head.
 */

/** Additive mask value: finite, so that a row of nothing else still has a defined softmax. */
export const MASKED = -1e30;

/** Length of a chunk of new tokens: the symbol C, or one token. */
export type Chunk = 'C' | 1;

interface Heads {
  /** [B, K, G*C, D], scaled */
  readonly query: Node;
  /** [B, K, C, D] */
  readonly key: Node;
  readonly value: Node;
}

/** What one layer's attention reads beside its input. */
export interface LayerInputs {
  /** Rotary tables that broadcast to [B, heads, C, R/2]; absent where positions are not marked. */
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

/** Normalises each query and key head. x [..., H+K, C, D], stored [2D] */
export function normHeads(config: DecoderConfig, x: Node, stored: Node): Node {
  const { heads, kvHeads, headDim } = config;
  const weight = normWeight(config, stored);
  const ofHeads = (start: number, count: number) =>
    expand(slice(weight, 0, start, start + headDim), [count, 1, headDim]);
  return rmsNorm(x, concat([ofHeads(0, heads), ofHeads(headDim, kvHeads)], 0), config.rmsNormEps);
}

/** Splits fused projections [B*C, (H+2K)*D] into normalised and rotated queries and keys, and values. */
function splitHeads(config: DecoderConfig, qkv: Node, rows: string, length: Dim, inputs: LayerInputs): Heads {
  const { heads, kvHeads, headDim } = config;
  const all = transpose(reshape(qkv, [rows, length, heads + 2 * kvHeads, headDim]), [0, 2, 1, 3]);
  const raw = slice(all, 1, 0, heads + kvHeads);
  const normed = inputs.qkNorm ? normHeads(config, raw, inputs.qkNorm) : raw;
  const placed = inputs.rotary ? rotate(normed, inputs.rotary, headDim) : normed;
  const query = mul(slice(placed, 1, 0, heads), scalar(config.queryScale));
  return {
    query: reshape(query, [rows, kvHeads, mulDims(heads / kvHeads, length), headDim]),
    key: slice(placed, 1, heads, heads + kvHeads),
    value: slice(all, 1, heads + kvHeads, heads + 2 * kvHeads),
  };
}

/** Scores of queries [B, K, G*C, D] against keys [B, K, L, D], capped and masked: [B, K, G, C, L]. */
function maskedScores(config: DecoderConfig, query: Node, keys: Node, mask: Node, sizes: [Dim, Dim]): Node {
  const { heads, kvHeads, attentionCap } = config;
  const scores = reshape(matmul(query, transpose(keys, [0, 1, 3, 2])), ['B', kvHeads, heads / kvHeads, ...sizes]);
  return add(attentionCap === null ? scores : softCap(scores, attentionCap), mask);
}

/** [B, K, G*C, D] -> [B*C, H*D] */
function mergeHeads(config: DecoderConfig, context: Node, rows: string, length: Dim): Node {
  const { heads, headDim } = config;
  const byHead = transpose(reshape(context, [rows, heads, length, headDim]), [0, 2, 1, 3]);
  return reshape(byHead, [mulDims(rows, length), heads * headDim]);
}

/**
 * Attention of a chunk of C new tokens a row over L cached ones and the chunk itself. Cached and new scores are
 * computed apart, so that the cache is never copied.
 * @param qkv [B*C, (H+2K)*D]
 * @param inputs rotary tables [B, 1, C, R/2]
 * @param past keys and values [B, K, L, D]; additive masks: `mask` [B, 1, 1, C or 1, L], `chunkMask` [C, C]
 */
export function cachedAttention(
  config: DecoderConfig,
  qkv: Node,
  inputs: LayerInputs,
  past: { readonly key: Node; readonly value: Node; readonly mask: Node; readonly chunkMask: Node },
  chunk: Chunk,
): { readonly output: Node; readonly key: Node; readonly value: Node } {
  const { heads, kvHeads } = config;
  const { query, key, value } = splitHeads(config, qkv, 'B', chunk, inputs);
  const pastScores = maskedScores(config, query, past.key, past.mask, [chunk, 'L']);
  const newScores = maskedScores(config, query, key, past.chunkMask, [chunk, chunk]);
  // One softmax over both parts without joining them.
  const highest = max(reduceMax(pastScores, [4], true), reduceMax(newScores, [4], true));
  const pastWeights = exp(sub(pastScores, highest));
  const newWeights = exp(sub(newScores, highest));
  const total = add(reduceSum(pastWeights, [4], true), reduceSum(newWeights, [4], true));
  const rows = mulDims(heads / kvHeads, chunk);
  const mixed = add(
    matmul(reshape(pastWeights, ['B', kvHeads, rows, 'L']), past.value),
    matmul(reshape(newWeights, ['B', kvHeads, rows, chunk]), value),
  );
  const context = div(mixed, reshape(total, ['B', kvHeads, rows, 1]));
  return { output: mergeHeads(config, context, 'B', chunk), key, value };
}
