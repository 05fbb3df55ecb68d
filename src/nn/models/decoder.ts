import { input, type Node, recomputed, scalar } from '../graph.ts';
import { add, gatherRows, geluTanh, linear, mul, reshape, rmsNorm, silu, slice } from '../ops.ts';
import { type LayerInputs, normWeight } from './attention.ts';
import type { DecoderConfig } from './families.ts';
import { baseLinear } from './frozen-base.ts';
import { blockLogits, type TokenPredictions, tokenPredictions } from './head.ts';
import { kindInput } from './layers.ts';
import { adapt } from './lora.ts';
import { maskInput, maskShape, PLACES, ROW_CLASSES, rowAttention, TOKENS } from './row-attention.ts';
import type { Weights } from './weights.ts';

/**
 * The decoder as a graph that is trained: whole sequences, packed, with tokens or values as its result. Weights are read
 * in the checkpoint's layout. The forms that are sampled from are in sampling.ts.
 *
 * Symbols: N packed tokens, M places of their keys, P predicted positions, B rows, V vocabulary; R is
 * the number of rotated elements of a head.
 */

type Attend = (qkv: Node, layer: number) => Node;

function norm(config: DecoderConfig, x: Node, stored: Node): Node {
  return rmsNorm(x, normWeight(config, stored), config.rmsNormEps);
}

/** Rows of the embedding: tokens int64 [n] -> [n, hidden]. */
const embed = (weights: Weights, tokens: Node) => gatherRows(weights('embed'), tokens);

/** How whole sequences are computed. */
export interface FormOptions {
  /** Values inside a layer are not kept for the way back but computed anew (see `recomputed`). */
  readonly recompute?: boolean | undefined;
  /** False where nobody asks for the entropy. */
  readonly withEntropy?: boolean | undefined;
}

function decoderBlocks(
  config: DecoderConfig,
  weights: Weights,
  embedded: Node,
  attend: Attend,
  { recompute = false }: FormOptions,
): Node {
  const { embeddingScale } = config;
  let x = embeddingScale === 1 ? embedded : mul(embedded, scalar(embeddingScale));
  for (let layer = 0; layer < config.layers; layer++) {
    const block = () => decoderBlock(config, weights, x, attend, layer);
    x = recompute ? recomputed(block) : block();
  }
  return x;
}

function decoderBlock(config: DecoderConfig, weights: Weights, input: Node, attend: Attend, layer: number): Node {
  const { biases, intermediateSize } = config;
  const activate = { silu, geluTanh }[config.activation];
  const weight = (name: string) => weights(`layers.${layer}.${name}`);
  const project = (input: Node, name: string, bias: boolean) => {
    const own = `layers.${layer}.${name}`;
    const result = baseLinear(weights, input, own, bias ? weight(`${name}_bias`) : undefined);
    return weights.adapter ? adapt(weights.adapter, weights, own, input, result) : result;
  };
  const out = (result: Node, name: string) => (config.sandwichNorms ? norm(config, result, weight(name)) : result);

  const qkv = project(norm(config, input, weight('input_norm')), 'qkv', biases.qkv);
  const x = add(input, out(project(attend(qkv, layer), 'o', biases.output), 'attention_out_norm'));
  const gateUp = project(norm(config, x, weight('mlp_norm')), 'gate_up', biases.mlp);
  const gate = slice(gateUp, 1, 0, intermediateSize);
  const up = slice(gateUp, 1, intermediateSize, 2 * intermediateSize);
  return add(x, out(project(mul(activate(gate), up), 'down', biases.mlp), 'mlp_out_norm'));
}

/** Name of the vocabulary projection. */
export const headName = ({ tied }: Pick<DecoderConfig, 'tied'>): string => (tied ? 'embed' : 'lm_head');

/** One node for each kind of layer, and which of them a layer reads. */
function layerInputs(
  config: DecoderConfig,
  weights: Weights,
  table: (name: string, columns: number) => Node,
): (layer: number) => LayerInputs {
  const rotary = config.ropes.map(({ frequencies }, kind) => ({
    cos: table(kindInput('cos', kind), frequencies.length),
    sin: table(kindInput('sin', kind), frequencies.length),
  }));
  return layer => {
    const { rope } = config.layerKinds[layer]!;
    return {
      rotary: rope === null ? undefined : rotary[rope],
      qkNorm: config.qkNorm ? weights(`layers.${layer}.qk_norm`) : undefined,
    };
  };
}

export interface TrainingGraph extends TokenPredictions {
  /** [P, V] before temperature. */
  readonly logits: Node;
  /** [B*Q, hidden] the rows of the embedding that `tokens` name. */
  readonly embedded: Node;
}

/**
 * Last hidden states [N, hidden] of whole sequences, where sequences that begin alike share the tokens of their
 * beginning. Inputs: `tokens` [N], the rows of Q of all classes (see row-attention.ts) one after another; `cos`, `sin`
 * [N, R/2] at each token's position for each kind of rotary embedding; and for the attention `mask0` [B0, 1, Q, T0], …
 * for each class, additive, for each window (see `kindInput`), and the indices of `spread`: `keys` [M], `own` and `line`
 * [N], `extra` [E, R], `repeated` [N, 1].
 */
function packedForm(config: DecoderConfig, weights: Weights, embedded: Node, options: FormOptions): Node {
  const inputs = layerInputs(config, weights, (name, columns) => input(name, [TOKENS, columns]));
  const classes = Array.from({ length: ROW_CLASSES }, (_, c) => c);
  const masks = config.windows.map((_, kind) => classes.map(c => input(kindInput(maskInput(c), kind), maskShape(c))));
  const places = {
    places: input('keys', [PLACES], 'int64'),
    own: input('own', [TOKENS], 'int64'),
    extra: input('extra', ['E', 'R'], 'int64'),
    line: input('line', [TOKENS], 'int64'),
    repeated: input('repeated', [TOKENS, 1]),
  };
  const attend: Attend = (qkv, layer) =>
    rowAttention(config, qkv, inputs(layer), places, masks[config.layerKinds[layer]!.window]!);
  return decoderBlocks(config, weights, embedded, attend, options);
}

/**
 * Training form. Inputs of `packedForm`, and `places` [P] packed rows whose next token is predicted; `targets` [P]
 * those tokens; `inverse_temperature` []. The vocabulary projection runs at the P predicted positions only.
 */
export function trainingForm(config: DecoderConfig, weights: Weights, options: FormOptions = {}): TrainingGraph {
  needHead(config, 'lm');
  const embedded = embed(weights, input('tokens', [TOKENS], 'int64'));
  const hidden = packedForm(config, weights, embedded, options);
  const predicting = gatherRows(hidden, input('places', ['P'], 'int64'));
  const name = headName(config);
  const blocks = (weights.blocks?.get(name) ?? [name]).map(weights);
  const rows = norm(config, predicting, weights('norm'));
  const predictions = tokenPredictions(
    rows,
    { blocks, cap: config.logitCap },
    input('targets', ['P'], 'int64'),
    input('inverse_temperature', []),
    options,
  );
  return { ...predictions, logits: blockLogits(rows, weights(name), config.logitCap), embedded };
}

/**
 * Training form of a model with a value head: values [P] of the hidden states at `places` [P], that is, of what was
 * read up to and including those tokens. Inputs of `packedForm` beside `places`.
 */
export function valueForm(config: DecoderConfig, weights: Weights, options: FormOptions = {}): Node {
  needHead(config, 'score');
  const embedded = embed(weights, input('tokens', [TOKENS], 'int64'));
  const rows = gatherRows(packedForm(config, weights, embedded, options), input('places', ['P'], 'int64'));
  return reshape(linear(norm(config, rows, weights('norm')), weights('score')), ['P']);
}

function needHead(config: DecoderConfig, head: DecoderConfig['head']): void {
  if (config.head === head) return;
  throw new Error(
    head === 'lm'
      ? `a ${config.architecture} with a value head predicts no tokens; give the causal language model`
      : `the ${config.architecture} has no value head; give its config through scoreConfig`,
  );
}
