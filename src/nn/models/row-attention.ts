import type { Dim, Node } from '../graph.ts';
import { scalar } from '../graph.ts';
import { add, concat, matmul, mul, reshape, type Spread, slice, softCap, softmax, spread, transpose } from '../ops.ts';
import { addDims, mulDims } from '../shape.ts';
import { type LayerInputs, normHeads, rotate } from './attention.ts';
import type { DecoderConfig } from './families.ts';

/**
 * Classes of rows by their number of keys. With two, the rows at the beginning of a sequence have half the keys of
 * those at its end, and a quarter of the scores is saved.
 */
export const ROW_CLASSES = 2;

/** Symbols of a class: B rows, T keys. */
const CLASSES = Array.from({ length: ROW_CLASSES }, (_, c) => ({ B: `B${c}`, T: `T${c}` }));
/** Rows of all classes, packed tokens, and places of their keys. */
export const ROWS = addDims(...CLASSES.map(({ B }) => B));
export const TOKENS = mulDims(ROWS, 'Q');
export const PLACES = addDims(...CLASSES.map(({ B, T }) => mulDims(B, T)));

/** Name of the mask of a class, for the first window; `kindInput` makes those of others of it. */
export const maskInput = (c: number) => `mask${c}`;
/** [B, 1, Q, T] */
export const maskShape = (c: number): Dim[] => [CLASSES[c]!.B, 1, 'Q', CLASSES[c]!.T];

/**
 * Grouped-query attention of whole sequences (training). The packed tokens are rows of Q queries; a row of a class has
 * T keys, which `places` gathers among all tokens: those before it that some of its queries see, and its own. So
 * tokens that several sequences share are queries once and keys of many rows.
 *
 * H query heads, K key/value heads, G = H / K, D head size.
 *
 * @param qkv [TOKENS, (H+2K)*D]
 * @param inputs rotary tables [TOKENS, R/2]
 * @param places where tokens are keys: M = PLACES, class after class
 * @param masks additive, one for each class
 * @returns [TOKENS, H*D]
 */
export function rowAttention(
  config: DecoderConfig,
  qkv: Node,
  inputs: LayerInputs,
  places: Spread,
  masks: readonly Node[],
): Node {
  const { heads, kvHeads, headDim, attentionCap } = config;
  const group = heads / kvHeads;
  const all = transpose(reshape(qkv, [TOKENS, heads + 2 * kvHeads, headDim]), [1, 0, 2]);
  const raw = slice(all, 0, 0, heads + kvHeads);
  const normed = inputs.qkNorm ? normHeads(config, raw, inputs.qkNorm) : raw;
  const placed = inputs.rotary ? rotate(normed, inputs.rotary, headDim) : normed;

  const scaled = mul(slice(placed, 0, 0, heads), scalar(config.queryScale));
  const byRow = transpose(reshape(scaled, [kvHeads, group, ROWS, 'Q', headDim]), [0, 2, 1, 3, 4]);
  const query = reshape(byRow, [kvHeads, ROWS, mulDims(group, 'Q'), headDim]);
  const key = spread(slice(placed, 0, heads, heads + kvHeads), places);
  const value = spread(slice(all, 0, heads + kvHeads, heads + 2 * kvHeads), places);

  let row: Dim = 0;
  let place: Dim = 0;
  const contexts = CLASSES.map(({ B, T }, c) => {
    const [nextRow, nextPlace]: [Dim, Dim] = [addDims(row, B), addDims(place, mulDims(B, T))];
    const queries = slice(query, 1, row, nextRow);
    const ofClass = (x: Node) => reshape(slice(x, 1, place, nextPlace), [kvHeads, B, T, headDim]);
    const scores = matmul(queries, transpose(ofClass(key), [0, 1, 3, 2]));
    const capped = attentionCap === null ? scores : softCap(scores, attentionCap);
    const weights = softmax(add(reshape(capped, [kvHeads, B, group, 'Q', T]), masks[c]!));
    const context = matmul(reshape(weights, [kvHeads, B, mulDims(group, 'Q'), T]), ofClass(value));
    [row, place] = [nextRow, nextPlace];
    return context;
  });
  const context = reshape(concat(contexts, 1), [kvHeads, ROWS, group, 'Q', headDim]);
  return reshape(transpose(context, [1, 3, 0, 2, 4]), [TOKENS, heads * headDim]);
}
