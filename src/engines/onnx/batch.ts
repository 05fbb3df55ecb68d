import type { LearnerSequence } from '../contracts.ts';

/**
 * Packing for the learner: sequences are cut into micro-batches by a token budget, and each micro-batch becomes the
 * integer inputs of the training form (see nn/models/decoder.ts).
 */

/**
 * Groups sequence indices into micro-batches whose padded size (rows × longest input) stays within `budget`. Longest
 * first, so that rows of similar length share a batch; a sequence longer than the budget gets one of its own.
 * Depends on the lengths only.
 */
export function microBatches(lengths: readonly number[], budget: number): number[][] {
  const order = lengths.map((_, index) => index).sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: number[][] = [];
  let current: number[] = [];
  let longest = 0;
  for (const index of order) {
    longest ||= lengths[index]!;
    if (current.length > 0 && (current.length + 1) * longest > budget) {
      batches.push(current);
      current = [];
      longest = lengths[index]!;
    }
    current.push(index);
  }
  if (current.length > 0) batches.push(current);
  return batches;
}

export interface PackedBatch {
  readonly symbols: {
    readonly N: number;
    readonly B: number;
    readonly T: number;
    readonly P: number;
    readonly S: number;
  };
  readonly feeds: {
    readonly tokens: BigInt64Array;
    readonly pad: BigInt64Array;
    readonly unpad: BigInt64Array;
    readonly real: Float32Array;
    readonly places: BigInt64Array;
    readonly targets: BigInt64Array;
  };
  /** [S + 1] the positions of sequence s are [offsets[s], offsets[s+1]). */
  readonly offsets: readonly number[];
}

/** Number of input tokens of a sequence: its last token is only ever predicted. */
export function inputLength(sequence: LearnerSequence): number {
  return Math.max(1, sequence.tokens.length - 1);
}

/** Packs sequences, each with at least one predicted position between them, into one training batch. */
export function packBatch(sequences: readonly LearnerSequence[]): PackedBatch {
  const lengths = sequences.map(inputLength);
  const T = Math.max(...lengths);
  const B = sequences.length;
  const N = lengths.reduce((sum, length) => sum + length, 0);
  const offsets = [0];
  for (const { predict } of sequences) offsets.push(offsets.at(-1)! + predict.reduce((count, p) => count + p, 0));
  const P = offsets.at(-1)!;

  const tokens = new BigInt64Array(N);
  const unpad = new BigInt64Array(N);
  const pad = new BigInt64Array(B * T);
  const real = new Float32Array(B * T);
  const places = new BigInt64Array(P);
  const targets = new BigInt64Array(P);
  let packed = 0;
  let place = 0;
  sequences.forEach((sequence, row) => {
    for (let t = 0; t < lengths[row]!; t++) {
      tokens[packed] = BigInt(sequence.tokens[t]!);
      unpad[packed] = BigInt(row * T + t);
      pad[row * T + t] = BigInt(packed);
      real[row * T + t] = 1;
      if (sequence.predict[t + 1] === 1) {
        places[place] = BigInt(packed);
        targets[place] = BigInt(sequence.tokens[t + 1]!);
        place += 1;
      }
      packed += 1;
    }
  });
  return { symbols: { N, B, T, P, S: B }, feeds: { tokens, pad, unpad, real, places, targets }, offsets };
}

/** [S, P] with 1 where position p belongs to sequence s. */
export function membership(offsets: readonly number[]): Float32Array {
  const P = offsets.at(-1)!;
  const matrix = new Float32Array((offsets.length - 1) * P);
  for (let s = 0; s + 1 < offsets.length; s++) matrix.fill(1, s * P + offsets[s]!, s * P + offsets[s + 1]!);
  return matrix;
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
