import type { LearnerSequence } from '../contracts.ts';
import { type AttentionSizes, cutRows, packedIndex, type RowFeeds, type Rows, rowFeeds } from './rows.ts';
import { growTree, neighbours } from './tree.ts';

/**
 * Packing for the learner: sequences are cut into micro-batches by a token budget, and each micro-batch becomes the
 * integer inputs of the training form (see nn/models/decoder.ts).
 */

/** What a model reads of a sequence: all but its last token, which is only ever predicted. */
export function inputTokens({ tokens }: LearnerSequence): Int32Array {
  return tokens.subarray(0, Math.max(1, tokens.length - 1));
}

/**
 * Groups sequences into micro-batches of at most `budget` tokens, a shared prefix counted once. Sequences that share
 * one stay together where they fit; the longest come first, so that keys of similar length share a batch. A sequence
 * longer than the budget gets a micro-batch of its own.
 * @param inputs what the model reads of each sequence
 * @returns indices of sequences
 */
export function microBatches(inputs: readonly Int32Array[], budget: number, share: boolean): number[][] {
  const batches: number[][] = [];
  let current: number[] = [];
  let used = 0;
  const close = () => {
    if (current.length > 0) batches.push(current);
    current = [];
    used = 0;
  };
  for (const family of families(inputs, share)) {
    const total = family.reduce((sum, { fresh }) => sum + fresh, 0);
    if (total <= budget && used + total > budget) close();
    family.forEach(({ index, fresh }, place) => {
      const length = inputs[index]!.length;
      const begins = place === 0 || current.length === 0;
      if (used + (begins ? length : fresh) > budget) close();
      used += current.length === 0 ? length : fresh;
      current.push(index);
    });
  }
  close();
  return batches;
}

/** A sequence, and how many of its tokens are not those of the one before it in the family. */
interface Member {
  readonly index: number;
  readonly fresh: number;
}

/** Runs of sequences that share prefixes, those with the longest sequence first. */
function families(inputs: readonly Int32Array[], share: boolean): Member[][] {
  const { order, shared } = neighbours(inputs, share);
  const found: Member[][] = [];
  order.forEach((index, place) => {
    const member = { index, fresh: inputs[index]!.length - shared[place]! };
    if (shared[place] === 0) found.push([member]);
    else found.at(-1)!.push(member);
  });
  const longest = (family: readonly Member[]) => Math.max(...family.map(({ index }) => inputs[index]!.length));
  const lengths = new Map(found.map(family => [family, longest(family)]));
  return found.sort((a, b) => lengths.get(b)! - lengths.get(a)! || a[0]!.index - b[0]!.index);
}

export interface PackedBatch {
  /** Q, E and R of `Rows`, and B and T of its classes by number; P predicted positions, S sequences. */
  readonly symbols: Readonly<Record<string, number>> & { readonly P: number; readonly S: number };
  readonly feeds: RowFeeds & {
    readonly tokens: BigInt64Array;
    readonly places: BigInt64Array;
    readonly targets: BigInt64Array;
  };
  readonly rows: Rows;
  /** [S + 1] the positions of sequence s are [offsets[s], offsets[s+1]). */
  readonly offsets: readonly number[];
}

/**
 * Packs sequences, each with at least one predicted position between them, into one training batch.
 * @param share whether prefixes that sequences have in common are computed once
 */
export function packBatch(sequences: readonly LearnerSequence[], config: AttentionSizes, share = true): PackedBatch {
  const tree = growTree(sequences.map(inputTokens), share);
  const rows = cutRows(tree, config);
  const { Q, E, R, classes } = rows;
  const index = packedIndex(rows);
  const tokens = new BigInt64Array(rows.rank.length * Q);
  for (const [n, token] of tree.tokens.entries()) tokens[index[n]!] = BigInt(token);
  const offsets = [0];
  const places: bigint[] = [];
  const targets: bigint[] = [];
  sequences.forEach((sequence, s) => {
    sequence.predict.forEach((predicted, t) => {
      if (predicted !== 1) return;
      places.push(BigInt(index[tree.paths[s]![t - 1]!]!));
      targets.push(BigInt(sequence.tokens[t]!));
    });
    offsets.push(places.length);
  });
  const sizes = Object.fromEntries(
    classes.flatMap(({ B, T }, c) => [
      [`B${c}`, B],
      [`T${c}`, T],
    ]),
  );
  const symbols = { ...sizes, Q, E, R, P: places.length, S: sequences.length };
  const predictions = { places: BigInt64Array.from(places), targets: BigInt64Array.from(targets) };
  return { symbols, feeds: { ...rowFeeds(rows), tokens, ...predictions }, rows, offsets };
}

/** Refuses what would silently train on the wrong thing. */
export function checkSequence(
  sequence: LearnerSequence,
  index: number,
  limits: { vocabSize: number; context: number },
): void {
  const { tokens, predict, images = [] } = sequence;
  const where = `sequence ${index} of the batch`;
  if (images.length > 0) throw new Error(`${where} has images; the embedded engine reads text only`);
  if (tokens.length === 0) throw new Error(`${where} is empty`);
  if (predict.length !== tokens.length) {
    throw new Error(`${where} has ${tokens.length} tokens but ${predict.length} prediction marks`);
  }
  if (tokens.length > limits.context) {
    throw new Error(
      `${where} has ${tokens.length} tokens; the model's window is ${limits.context}: shorten data.max_len`,
    );
  }
  const mark = predict.find(value => value > 1);
  if (mark !== undefined) throw new Error(`${where} has the prediction mark ${mark}; a mark is 0 or 1`);
  if (predict[0] === 1) throw new Error(`${where} asks to predict its first token, which nothing precedes`);
  const bad = tokens.findIndex(token => token < 0 || token >= limits.vocabSize);
  if (bad >= 0) {
    throw new Error(
      `${where} has token id ${tokens[bad]} at position ${bad}; the vocabulary has ${limits.vocabSize} ids`,
    );
  }
}
