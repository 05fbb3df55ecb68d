import { input, type Node, scalar } from '../graph.ts';
import { add, concat, gatherRows, mul, softCap } from '../ops.ts';
import { addNormalize, fusedGeluTanh, fusedSilu, normalize, splitLast } from '../runtime-ops.ts';
import { mulDims } from '../shape.ts';
import { normWeight } from './attention.ts';
import { type CachedLayer, type Chunk, cachedAttention } from './cached-attention.ts';
import { drawTokens } from './draw.ts';
import type { DecoderConfig } from './families.ts';
import { kindInput } from './layers.ts';
import type { PolicyWeights } from './policy-weights.ts';

/**
 * The decoder as it is sampled from: new tokens over a cache of the keys and values of earlier ones. The same function
 * as the training form of decoder.ts, in fewer operators.
 *
 * Symbols: B rows, C new tokens of each, L cache length, S rows of the rotary tables, R rotated elements of a head.
 */

/**
 * C new tokens for each of B rows. Inputs: `tokens` [B*C]; `positions` int64 [B, C]; `cos`, `sin` [S, R/2] for each
 * kind of rotary embedding; for each window `past_mask` [B, 1, 1, L], or [B, 1, 1, C or 1, L] of a prefill (C where it
 * is not null), and there `chunk_mask` [C, C], all additive; `past_key.i`, `past_value.i` [B, K, L, D].
 */
function cachedForm(config: DecoderConfig, weights: PolicyWeights, chunk: Chunk) {
  if (config.head !== 'lm') {
    throw new Error(`a ${config.architecture} with a value head predicts no tokens; give the causal language model`);
  }
  const { biases, intermediateSize, rmsNormEps, sandwichNorms } = config;
  const { tensor } = weights;
  const tokens = input('tokens', [mulDims('B', chunk)], 'int64');
  const positions = input('positions', ['B', chunk], 'int64');
  const layers = cachedLayers(config, tensor, chunk);
  const activate = { silu: fusedSilu, geluTanh: fusedGeluTanh }[config.activation];
  const weightOf = (name: string) => normWeight(config, tensor(name));
  const appended: Node[] = [];

  const embedded = gatherRows(tensor('embed'), tokens);
  let sum = config.embeddingScale === 1 ? embedded : mul(embedded, scalar(config.embeddingScale));
  let normed = normalize(sum, weightOf('layers.0.input_norm'), rmsNormEps);
  for (let layer = 0; layer < config.layers; layer++) {
    const own = (name: string) => `layers.${layer}.${name}`;
    const project = (x: Node, name: string, bias: boolean) => {
      const product = weights.project(x, own(name));
      return bias ? add(product, tensor(own(`${name}_bias`))) : product;
    };
    /** Adds what a block gives, normalised itself where the family does that, and normalises the sum. */
    const addBlock = (block: Node, outNorm: string, next: string) => {
      const result = sandwichNorms ? normalize(block, weightOf(own(outNorm)), rmsNormEps) : block;
      ({ sum, normed } = addNormalize(sum, result, weightOf(next), rmsNormEps));
    };
    const qkv = project(normed, 'qkv', biases.qkv);
    const { output, key, value } = cachedAttention(config, qkv, positions, layers(layer), chunk);
    appended.push(key, value);
    addBlock(project(output, 'o', biases.output), 'attention_out_norm', own('mlp_norm'));
    const gateUp = project(normed, 'gate_up', biases.mlp);
    const [gate, up] = splitLast(gateUp, [intermediateSize, intermediateSize]);
    const following = layer + 1 < config.layers ? `layers.${layer + 1}.input_norm` : 'norm';
    addBlock(project(mul(activate(gate!), up!), 'down', biases.mlp), 'mlp_out_norm', following);
  }
  return { normed, appended: concat(appended, 1) };
}

function cachedLayers(
  config: DecoderConfig,
  tensor: (name: string) => Node,
  chunk: Chunk,
): (layer: number) => CachedLayer {
  const tables = config.ropes.map(({ frequencies }, kind) => ({
    cos: input(kindInput('cos', kind), ['S', frequencies.length]),
    sin: input(kindInput('sin', kind), ['S', frequencies.length]),
  }));
  const masks = config.windows.map((window, kind) => ({
    pastMask: input(
      kindInput('past_mask', kind),
      chunk === 1 ? ['B', 1, 1, 'L'] : ['B', 1, 1, window === null ? 1 : chunk, 'L'],
    ),
    chunkMask: chunk === 1 ? undefined : input(kindInput('chunk_mask', kind), [chunk, chunk]),
  }));
  return layer => {
    const { rope, window } = config.layerKinds[layer]!;
    const past = ['B', config.kvHeads, 'L', config.headDim];
    return {
      rotary: rope === null ? undefined : tables[rope],
      qkNorm: config.qkNorm ? tensor(`layers.${layer}.qk_norm`) : undefined,
      pastKey: input(`past_key.${layer}`, past),
      pastValue: input(`past_value.${layer}`, past),
      ...masks[window]!,
    };
  };
}

/**
 * Prefill: new tokens for the cache, and no prediction. Inputs of the cached form; gives `appended` [B*C, layers·2·K·D],
 * of each token the keys and values of every layer: key 0, value 0, key 1, ….
 */
export function prefillForm(config: DecoderConfig, weights: PolicyWeights): Record<string, Node> {
  return { appended: cachedForm(config, weights, 'C').appended };
}

/**
 * One decode step: one token a row, and the next one drawn. Further inputs: `inverse_temperature`, `uniform` and bool
 * `greedy` [B, 1], see draw.ts.
 *
 * Outputs: `token` int64 [B], `logprob` [B] of it, `logits` [B, V] after temperature, and `appended` as of a prefill.
 */
export function decodeForm(config: DecoderConfig, weights: PolicyWeights): Record<string, Node> {
  const { normed, appended } = cachedForm(config, weights, 1);
  const inverse = input('inverse_temperature', ['B', 1]);
  const project = (x: Node) => weights.project(x, config.tied ? 'embed' : 'lm_head');
  // A row of `normed` is shorter than one of logits; a cap must come before the temperature.
  const logits =
    config.logitCap === null ? project(mul(normed, inverse)) : mul(softCap(project(normed), config.logitCap), inverse);
  const draw = { uniform: input('uniform', ['B', 1]), greedy: input('greedy', ['B', 1], 'bool') };
  return { ...drawTokens(logits, draw), logits, appended };
}
