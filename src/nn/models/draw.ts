import { constant, type Node, scalar } from '../graph.ts';
import {
  add,
  argmax,
  cast,
  cumsum,
  div,
  exp,
  greater,
  log,
  max,
  min,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  slice,
  sub,
  takeLast,
  where,
} from '../ops.ts';
import { gatherBlock } from '../runtime-ops.ts';

/** What is drawn with, a row each: [B, 1]. */
export interface Draw {
  /** In [0, 1 − 2⁻²³]: the place in the cumulative distribution. */
  readonly uniform: Node;
  /** bool: takes the most probable token instead. */
  readonly greedy: Node;
}

/** Below this size one pass over the vocabulary costs less than the operators that would save it. */
const SMALL = 1024;

/**
 * Draws from softmax(logits) by inverting its cumulative distribution: the first token whose cumulative probability
 * exceeds `uniform`. Large vocabularies are cut into blocks: a block is drawn by the blocks' sums, then a token inside
 * it, so that only maximum and exponential pass over all of them.
 * @param logits [B, V]
 * @returns `token` int64 [B], `logprob` [B] of it
 */
export function drawTokens(logits: Node, { uniform, greedy }: Draw): { readonly token: Node; readonly logprob: Node } {
  const rows = logits.shape[0]!;
  const vocabulary = logits.shape[1] as number;
  const block = blockSize(vocabulary);
  if (block === undefined) {
    const weights = exp(sub(logits, reduceMax(logits, [1], true)));
    const cumulative = cumsum(weights);
    const total = slice(cumulative, 1, vocabulary - 1, vocabulary);
    const token = invert(cumulative, mul(total, uniform), greedy, logits);
    return { token, logprob: logShare(takeLast(weights, token), total) };
  }
  const blocks = vocabulary / block;
  const logitBlocks = reshape(logits, [rows, blocks, block]);
  const highest = reduceMax(logitBlocks, [2]);
  const weights = exp(sub(logits, reduceMax(highest, [1], true)));
  const byBlock = reshape(weights, [rows, blocks, block]);
  const sums = reduceSum(byBlock, [2]);
  const cumulative = cumsum(sums);
  const total = slice(cumulative, 1, blocks - 1, blocks);
  const threshold = mul(total, uniform);
  const chosen = invert(cumulative, threshold, greedy, highest);
  const own = gatherBlock(byBlock, chosen);
  const ownLogits = gatherBlock(logitBlocks, chosen);
  const before = sub(takeLast(cumulative, chosen), takeLast(sums, chosen));
  const inside = cumsum(own);
  // Rounding must carry the threshold neither past the block's end, where no element would exceed it, nor below its
  // beginning, where an element of probability 0 would.
  const end = mul(slice(inside, 1, block - 1, block), scalar(1 - 2 ** -23));
  const rest = max(min(sub(threshold, reshape(before, [rows, 1])), end), scalar(0));
  const place = invert(inside, rest, greedy, ownLogits);
  const token = add(mul(chosen, constant(BigInt64Array.of(BigInt(block)), [])), place);
  return { token, logprob: logShare(takeLast(own, place), total) };
}

/** The first element that exceeds the threshold [B, 1], or the greatest of `scores`: int64 [B]. */
function invert(cumulative: Node, threshold: Node, greedy: Node, scores: Node): Node {
  const drawn = argmax(cast(greater(cumulative, threshold), 'float32'));
  return where(reshape(greedy, scores.shape.slice(0, 1)), argmax(scores), drawn);
}

const logShare = (weight: Node, total: Node) => log(div(weight, reshape(total, weight.shape)));

/** The largest divisor between 32 and 512, if there is one. */
function blockSize(vocabulary: number): number | undefined {
  if (vocabulary < SMALL) return undefined;
  for (let size = 512; size >= 32; size--) if (vocabulary % size === 0) return size;
  return undefined;
}
