import { input, type Node, scalar } from '../graph.ts';
import {
  add,
  argmax,
  cast,
  cumsum,
  exp,
  gatherRows,
  greater,
  linear,
  logSoftmax,
  mul,
  neg,
  padRows,
  reduceSum,
  reshape,
  rmsNorm,
  silu,
  slice,
  takeLast,
  unpadRows,
  where,
} from '../ops.ts';
import { mulDims } from '../shape.ts';
import { type Chunk, cachedAttention, sequenceAttention } from './attention.ts';
import type { DecoderConfig } from './families.ts';
import type { Parameter } from './parameters.ts';

/**
 * The Llama-style decoder as a graph: a training form (whole sequences, packed rows), a prefill form and a decode form
 * (new tokens over a cache). All read the same weights, in the checkpoint's layout.
 *
 * Symbols: N packed tokens, B rows, T longest row, P predicted positions, C chunk, L cache length, V vocabulary.
 */

export type Weights = (name: string) => Node;

/** Graph inputs for every parameter of the layout, under the parameter's name. */
export function weightInputs(layout: readonly Parameter[]): Weights {
  const nodes = new Map(layout.map(({ name, shape }) => [name, input(name, shape)]));
  return name => {
    const node = nodes.get(name);
    if (node === undefined) throw new Error(`the model has no parameter '${name}'`);
    return node;
  };
}

type Attend = (qkv: Node, layer: number) => Node;

function decoderBlocks(config: DecoderConfig, weights: Weights, embedded: Node, attend: Attend): Node {
  let x = embedded;
  for (let layer = 0; layer < config.layers; layer++) {
    const weight = (name: string) => weights(`layers.${layer}.${name}`);
    const bias = (name: string, present: boolean) => (present ? weight(`${name}_bias`) : undefined);
    const attended = rmsNorm(x, weight('input_norm'), config.rmsNormEps);
    const qkv = linear(attended, weight('qkv'), bias('qkv', config.attentionBias));
    x = add(x, linear(attend(qkv, layer), weight('o')));
    const gateUp = linear(rmsNorm(x, weight('post_norm'), config.rmsNormEps), weight('gate_up'));
    const gate = slice(gateUp, 1, 0, config.intermediateSize);
    const up = slice(gateUp, 1, config.intermediateSize, 2 * config.intermediateSize);
    x = add(x, linear(mul(silu(gate), up), weight('down')));
  }
  return x;
}

/** Logits of some rows of the last hidden state: [R, hidden] -> [R, V]. */
function head(config: DecoderConfig, weights: Weights, rows: Node): Node {
  return linear(rmsNorm(rows, weights('norm'), config.rmsNormEps), weights(config.tied ? 'embed' : 'lm_head'));
}

export interface TrainingGraph {
  /** [P, V] before temperature. */
  readonly logits: Node;
  /** [P] log-probability of each predicted token, after temperature. */
  readonly logprobs: Node;
  /** [P] entropy in nats, after temperature. */
  readonly entropy: Node;
}

/**
 * Training form. Inputs: `tokens` [N] of all rows one after another; `pad` [B*T] and `unpad` [N] move packed rows to
 * padded places and back, `real` [B*T, 1] marks the places in use; `cos`, `sin` [T, D/2]; `mask` [T, T] additive;
 * `places` [P] packed rows whose next token is predicted; `targets` [P] those tokens; `inverse_temperature` [].
 * The vocabulary projection runs at the P predicted positions only.
 */
export function trainingForm(config: DecoderConfig, weights: Weights): TrainingGraph {
  const half = config.headDim / 2;
  const cos = input('cos', ['T', half]);
  const sin = input('sin', ['T', half]);
  const mask = input('mask', ['T', 'T']);
  const pad = input('pad', ['B*T'], 'int64');
  const unpad = input('unpad', ['N'], 'int64');
  const real = input('real', ['B*T', 1]);

  const embedded = gatherRows(weights('embed'), input('tokens', ['N'], 'int64'));
  const hidden = decoderBlocks(config, weights, embedded, qkv => {
    const attended = sequenceAttention(config, padRows(qkv, pad, unpad), cos, sin, mask);
    return unpadRows(attended, unpad, pad, real);
  });
  const logits = head(config, weights, gatherRows(hidden, input('places', ['P'], 'int64')));
  const logp = logSoftmax(mul(logits, input('inverse_temperature', [])));
  return {
    logits,
    logprobs: takeLast(logp, input('targets', ['P'], 'int64')),
    entropy: neg(reduceSum(mul(exp(logp), logp), [1])),
  };
}

/**
 * Cached form: a chunk of C new tokens for each of B rows over a cache. Inputs: `tokens` [B*C]; `cos`, `sin`
 * [B, 1, C, D/2] at each row's positions; `past_mask` [B, 1, 1, 1, L] and `chunk_mask` [C, C] additive; `past_key.i`,
 * `past_value.i` [B, K, L, D]. Gives the last hidden state [B*C, hidden] and `key.i`, `value.i` [B, K, C, D].
 */
function cachedForm(config: DecoderConfig, weights: Weights, chunk: Chunk) {
  const { kvHeads, headDim } = config;
  const cos = input('cos', ['B', 1, chunk, headDim / 2]);
  const sin = input('sin', ['B', 1, chunk, headDim / 2]);
  const mask = input('past_mask', ['B', 1, 1, 1, 'L']);
  const chunkMask = input('chunk_mask', [chunk, chunk]);
  const cache: Record<string, Node> = {};
  const embedded = gatherRows(weights('embed'), input('tokens', [mulDims('B', chunk)], 'int64'));
  const hidden = decoderBlocks(config, weights, embedded, (qkv, layer) => {
    const key = input(`past_key.${layer}`, ['B', kvHeads, 'L', headDim]);
    const value = input(`past_value.${layer}`, ['B', kvHeads, 'L', headDim]);
    const attended = cachedAttention(config, qkv, cos, sin, { key, value, mask, chunkMask }, chunk);
    cache[`key.${layer}`] = attended.key;
    cache[`value.${layer}`] = attended.value;
    return attended.output;
  });
  return { hidden, cache };
}

/** Prefill: fills the cache with a chunk of tokens a row and predicts nothing. Inputs and outputs of the cached form. */
export function prefillForm(config: DecoderConfig, weights: Weights): Record<string, Node> {
  return cachedForm(config, weights, 'C').cache;
}

/**
 * One decode step: the cached form with one token a row, and a token drawn for each row. Further inputs:
 * `inverse_temperature` [B, 1]; `greedy` [B] 0/1; `uniform` [B] in [0, 1 − 2⁻²³].
 *
 * Outputs: `token` [B], drawn by inverting the cumulative distribution at `uniform` (the most probable one where
 * greedy), `logprob` [B] of it, `logp` [B, V], and the cache's `key.i`, `value.i`.
 */
export function decodeForm(config: DecoderConfig, weights: Weights): Record<string, Node> {
  const { hidden, cache } = cachedForm(config, weights, 1);
  const logp = logSoftmax(mul(head(config, weights, hidden), input('inverse_temperature', ['B', 1])));
  const cumulative = cumsum(exp(logp));
  const total = slice(cumulative, 1, config.vocabSize - 1, config.vocabSize);
  const threshold = mul(total, reshape(input('uniform', ['B']), ['B', 1]));
  const sampled = argmax(cast(greater(cumulative, threshold), 'float32'));
  const token = where(greater(input('greedy', ['B']), scalar(0.5)), argmax(logp), sampled);
  return { ...cache, token, logprob: takeLast(logp, token), logp };
}

/** Rotary tables for positions 0 … length−1: cos and sin, [length, D/2] each. */
export function rotaryTables(config: DecoderConfig, length: number): { cos: Float32Array; sin: Float32Array } {
  const half = config.headDim / 2;
  const cos = new Float32Array(length * half);
  const sin = new Float32Array(length * half);
  for (let i = 0; i < half; i++) {
    const frequency = config.ropeTheta ** (-i / half);
    for (let position = 0; position < length; position++) {
      cos[position * half + i] = Math.cos(position * frequency);
      sin[position * half + i] = Math.sin(position * frequency);
    }
  }
  return { cos, sin };
}
