import type { Loss } from '../src/algorithms/ops.ts';
import { DEFAULT_SAMPLING, type LossBatch } from '../src/engines/contracts.ts';
import type { SamplerRequest } from '../src/engines/onnx/row.ts';
import type { DecoderConfig } from '../src/nn/models/families.ts';

/** The same pseudo-random ids in every run (a linear congruential generator's high bits). */
export function randomIds(count: number, vocabulary: number, seed: number): Int32Array {
  let state = seed >>> 0;
  return Int32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * vocabulary);
  });
}

/** Rows of equal length in which every token but the first is predicted: `length` inputs a row. */
export function trainingBatch(rows: number, length: number, vocabulary: number): LossBatch {
  const sequences = Array.from({ length: rows }, (_, row) => ({
    tokens: randomIds(length + 1, vocabulary, row),
    predict: new Uint8Array(length + 1).fill(1, 1),
  }));
  return { sequences, temperature: 1, inputs: { advantages: sequences.map(() => new Float32Array(length).fill(1)) } };
}

/** The policy gradient in its simplest form. */
export const POLICY_GRADIENT: Loss = {
  key: 'bench-policy-gradient',
  inputs: ['advantages'],
  entropy: false,
  build(ops, { logprobs, inputs }) {
    return { loss: ops.neg(ops.sum(ops.mul(logprobs, inputs.advantages!))), metrics: {} };
  },
};

export function requests(count: number, prompt: number, maxTokens: number, vocabulary: number): SamplerRequest[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    tokens: randomIds(prompt, vocabulary, id),
    params: { ...DEFAULT_SAMPLING, maxTokens },
    seed: id,
    answered: 0,
    streaming: false,
  }));
}

/** Weights that a token is multiplied with, attention apart: the embedding counts once, as the vocabulary projection. */
export function activeParameters({ layers, hiddenSize, heads, kvHeads, headDim, ...config }: DecoderConfig): number {
  const attention = hiddenSize * headDim * (2 * heads + 2 * kvHeads);
  return layers * (attention + 3 * hiddenSize * config.intermediateSize) + config.vocabSize * hiddenSize;
}

/** Operations of the forward pass: two a weight and token, and four a pair of positions, head and head element. */
export function forwardFlops(config: DecoderConfig, tokens: number, length: number): number {
  const { layers, heads, headDim } = config;
  return tokens * (2 * activeParameters(config) + 4 * layers * heads * headDim * length);
}
