import type { Node } from '../graph.ts';
import { add, concat, matmul, mul, reshape, slice, softCap, softmax, transpose } from '../ops.ts';
import { normalize, rotaryEmbedding, scaledScores, splitLast } from '../runtime-ops.ts';
import { addDims, mulDims } from '../shape.ts';
import { normWeight } from './attention.ts';
import type { DecoderConfig } from './families.ts';

/**
 * Grouped-query attention of new tokens beside a cache of earlier keys and values (sampling). B rows, C new tokens of
 * each (one in a decode step), L cached ones, H query heads, K key/value heads, G = H / K, D head size.
 */

/** Number of new tokens a row: the symbol C, or one. */
export type Chunk = 'C' | 1;

/** What one layer's attention reads beside its input. */
export interface CachedLayer {
  /** Rows [S, R/2] of rotary tables; absent where positions are not marked. */
  readonly rotary: { readonly cos: Node; readonly sin: Node } | undefined;
  /** [2D] weights of the norms of queries and keys. */
  readonly qkNorm: Node | undefined;
  /** [B, K, L, D] */
  readonly pastKey: Node;
  readonly pastValue: Node;
  /** Additive; [B, 1, 1, L] for one token, else [B, 1, 1, C or 1, L]. */
  readonly pastMask: Node;
  /** [C, C] additive; one token sees itself and needs none. */
  readonly chunkMask: Node | undefined;
}

export interface CachedAttention {
  /** [B*C, H*D] */
  readonly output: Node;
  /** [B*C, K*D] */
  readonly key: Node;
  readonly value: Node;
}

/** Normalised and rotated queries and keys, and values, [B, C, heads·D] each. */
function splitHeads(config: DecoderConfig, qkv: Node, positions: Node, layer: CachedLayer, chunk: Chunk): Node[] {
  const { heads, kvHeads, headDim } = config;
  const sizes = [heads * headDim, kvHeads * headDim, kvHeads * headDim] as const;
  const all = reshape(qkv, ['B', chunk, sizes[0] + sizes[1] + sizes[2]]);
  const place = (x: Node, count: number) =>
    layer.rotary ? rotaryEmbedding(x, positions, layer.rotary, { heads: count, headDim }) : x;
  if (layer.qkNorm) {
    const weight = normWeight(config, layer.qkNorm);
    const norm = (x: Node, start: number) =>
      reshape(
        normalize(
          reshape(x, ['B', chunk, (x.shape[2] as number) / headDim, headDim]),
          slice(weight, 0, start, start + headDim),
          config.rmsNormEps,
        ),
        x.shape,
      );
    const [query, key, value] = splitLast(all, sizes);
    return [place(norm(query!, 0), heads), place(norm(key!, headDim), kvHeads), value!];
  }
  const [marked, value] = splitLast(all, [sizes[0] + sizes[1], sizes[2]]);
  return [...splitLast(place(marked!, heads + kvHeads), [sizes[0], sizes[1]]), value!];
}

/**
 * Attention of the new tokens over the cached ones and themselves, without ever copying the cache: scores of both are
 * computed apart, joined for one softmax, and parted again.
 * @param qkv [B*C, (H+2K)*D]
 * @param positions int64 [B, C] of the new tokens
 */
export function cachedAttention(
  config: DecoderConfig,
  qkv: Node,
  positions: Node,
  layer: CachedLayer,
  chunk: Chunk,
): CachedAttention {
  const { heads, kvHeads, headDim, queryScale, attentionCap } = config;
  const group = heads / kvHeads;
  const rows = mulDims(group, chunk);
  const [query, key, value] = splitHeads(config, qkv, positions, layer, chunk) as [Node, Node, Node];
  // One token needs no transposition.
  const byHead = (x: Node, count: number) =>
    chunk === 1
      ? reshape(x, ['B', count, 1, headDim])
      : transpose(reshape(x, ['B', chunk, count, headDim]), [0, 2, 1, 3]);
  const queries = reshape(byHead(query, heads), ['B', kvHeads, rows, headDim]);
  const keys = byHead(key, kvHeads);
  const values = byHead(value, kvHeads);

  const scores = (against: Node, mask: Node | undefined) => {
    const raw = scaledScores(queries, against, queryScale);
    const capped = attentionCap === null ? raw : softCap(raw, attentionCap);
    const shaped = chunk === 1 ? capped : reshape(capped, ['B', kvHeads, group, chunk, against.shape[2]!]);
    return mask ? add(shaped, mask) : shaped;
  };
  const joined = concat([scores(layer.pastKey, layer.pastMask), scores(keys, layer.chunkMask)], -1);
  const weights = reshape(softmax(joined), ['B', kvHeads, rows, addDims('L', chunk)]);
  const [ofPast, ofChunk] = splitLast(weights, ['L', chunk]);
  const mixed = add(matmul(ofPast!, layer.pastValue), chunk === 1 ? mul(ofChunk!, values) : matmul(ofChunk!, values));
  const byToken = chunk === 1 ? mixed : transpose(reshape(mixed, ['B', heads, chunk, headDim]), [0, 2, 1, 3]);
  const tokens = mulDims('B', chunk);
  return {
    output: reshape(byToken, [tokens, heads * headDim]),
    key: reshape(key, [tokens, kvHeads * headDim]),
    value: reshape(value, [tokens, kvHeads * headDim]),
  };
}
