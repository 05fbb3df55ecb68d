import type { Node } from '../graph.ts';
import { scalar } from '../graph.ts';
import { add, matmul, mul, reshape, type Spread, slice, softCap, softmax, spread, transpose } from '../ops.ts';
import { mulDims } from '../shape.ts';
import { type LayerInputs, normHeads, rotate } from './attention.ts';
import type { DecoderConfig } from './families.ts';

/**
 * Grouped-query attention of whole sequences (training). The N = B·Q packed tokens are rows of Q queries; a row has T
 * keys, which `places` gathers among all tokens: those before it that some of its queries see, and its own. So tokens
 * that several sequences share are queries once and keys of many rows.
 *
 * H query heads, K key/value heads, G = H / K, D head size.
 *
 * @param qkv [B*Q, (H+2K)*D]
 * @param inputs rotary tables [B*Q, R/2]
 * @param places where tokens are keys, M = B*T
 * @param mask [B, 1, Q, T] additive
 * @returns [B*Q, H*D]
 */
export function rowAttention(config: DecoderConfig, qkv: Node, inputs: LayerInputs, places: Spread, mask: Node): Node {
  const { heads, kvHeads, headDim, attentionCap } = config;
  const group = heads / kvHeads;
  const all = transpose(reshape(qkv, ['B*Q', heads + 2 * kvHeads, headDim]), [1, 0, 2]);
  const raw = slice(all, 0, 0, heads + kvHeads);
  const normed = inputs.qkNorm ? normHeads(config, raw, inputs.qkNorm) : raw;
  const placed = inputs.rotary ? rotate(normed, inputs.rotary, headDim) : normed;

  const scaled = mul(slice(placed, 0, 0, heads), scalar(config.queryScale));
  const byRow = transpose(reshape(scaled, [kvHeads, group, 'B', 'Q', headDim]), [0, 2, 1, 3, 4]);
  const query = reshape(byRow, [kvHeads, 'B', mulDims(group, 'Q'), headDim]);
  const keysOf = (x: Node) => reshape(spread(x, places), [kvHeads, 'B', 'T', headDim]);
  const key = keysOf(slice(placed, 0, heads, heads + kvHeads));
  const value = keysOf(slice(all, 0, heads + kvHeads, heads + 2 * kvHeads));

  const scores = reshape(matmul(query, transpose(key, [0, 1, 3, 2])), [kvHeads, 'B', group, 'Q', 'T']);
  const weights = softmax(add(attentionCap === null ? scores : softCap(scores, attentionCap), mask));
  const context = matmul(reshape(weights, [kvHeads, 'B', mulDims(group, 'Q'), 'T']), value);
  const byToken = transpose(reshape(context, [kvHeads, 'B', group, 'Q', headDim]), [1, 3, 0, 2, 4]);
  return reshape(byToken, ['B*Q', heads * headDim]);
}
