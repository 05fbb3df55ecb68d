import { input, type Node, scalar } from '../graph.ts';
import {
  add,
  exp,
  gatherRows,
  geluTanh,
  linear,
  logSoftmax,
  mul,
  neg,
  reduceSum,
  reshape,
  rmsNorm,
  silu,
  slice,
  softCap,
  takeLast,
} from '../ops.ts';
import { type LayerInputs, normWeight } from './attention.ts';
import type { DecoderConfig } from './families.ts';
import { kindInput } from './layers.ts';
import { type Adapter, adapt } from './lora.ts';
import type { Parameter } from './parameters.ts';
import { maskInput, maskShape, PLACES, ROW_CLASSES, rowAttention, TOKENS } from './row-attention.ts';

/**
 * The decoder as a graph that is trained: whole sequences, packed, with tokens or values as its result. Weights are read
 * in the checkpoint's layout. The forms that are sampled from are in sampling.ts.
 *
 * Symbols: N packed tokens, M places of their keys, P predicted positions, B rows, V vocabulary; R is
 * the number of rotated elements of a head.
 */

export interface Weights {
  (name: string): Node;
  /** Changes the projections that it adapts. */
  readonly adapter?: Adapter | undefined;
}

/** Graph inputs for every parameter of the layout, those of the adapter among them, under the parameter's name. */
export function weightInputs(layout: readonly Parameter[], adapter?: Adapter): Weights {
  const nodes = new Map(layout.map(({ name, shape }) => [name, input(name, shape)]));
  const find = (name: string) => {
    const node = nodes.get(name);
    if (node === undefined) throw new Error(`the model has no parameter '${name}'`);
    return node;
  };
  return Object.assign(find, { adapter });
}

type Attend = (qkv: Node, layer: number) => Node;

function norm(config: DecoderConfig, x: Node, stored: Node): Node {
  return rmsNorm(x, normWeight(config, stored), config.rmsNormEps);
}

function decoderBlocks(config: DecoderConfig, weights: Weights, tokens: Node, attend: Attend): Node {
  const { biases, intermediateSize, embeddingScale } = config;
  const activate = { silu, geluTanh }[config.activation];
  let x = gatherRows(weights('embed'), tokens);
  if (embeddingScale !== 1) x = mul(x, scalar(embeddingScale));
  for (let layer = 0; layer < config.layers; layer++) {
    const weight = (name: string) => weights(`layers.${layer}.${name}`);
    const project = (input: Node, name: string, bias: boolean) => {
      const result = linear(input, weight(name), bias ? weight(`${name}_bias`) : undefined);
      return weights.adapter ? adapt(weights.adapter, weights, `layers.${layer}.${name}`, input, result) : result;
    };
    const out = (result: Node, name: string) => (config.sandwichNorms ? norm(config, result, weight(name)) : result);

    const qkv = project(norm(config, x, weight('input_norm')), 'qkv', biases.qkv);
    x = add(x, out(project(attend(qkv, layer), 'o', biases.output), 'attention_out_norm'));
    const gateUp = project(norm(config, x, weight('mlp_norm')), 'gate_up', biases.mlp);
    const gate = slice(gateUp, 1, 0, intermediateSize);
    const up = slice(gateUp, 1, intermediateSize, 2 * intermediateSize);
    x = add(x, out(project(mul(activate(gate), up), 'down', biases.mlp), 'mlp_out_norm'));
  }
  return x;
}

/** Logits of some rows of the last hidden state: [R, hidden] -> [R, V]. */
function head(config: DecoderConfig, weights: Weights, rows: Node): Node {
  const logits = linear(norm(config, rows, weights('norm')), weights(config.tied ? 'embed' : 'lm_head'));
  return config.logitCap === null ? logits : softCap(logits, config.logitCap);
}

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

export interface TrainingGraph {
  /** [P, V] before temperature. */
  readonly logits: Node;
  /** [P] log-probability of each predicted token, after temperature. */
  readonly logprobs: Node;
  /** [P] entropy in nats, after temperature. */
  readonly entropy: Node;
}

/**
 * Last hidden states [N, hidden] of whole sequences, where sequences that begin alike share the tokens of their
 * beginning. Inputs: `tokens` [N], the rows of Q of all classes (see row-attention.ts) one after another; `cos`, `sin`
 * [N, R/2] at each token's position for each kind of rotary embedding; and for the attention `mask0` [B0, 1, Q, T0], …
 * for each class, additive, for each window (see `kindInput`), and the indices of `spread`: `keys` [M], `own` and `line`
 * [N], `extra` [E, R], `repeated` [N, 1].
 */
function packedForm(config: DecoderConfig, weights: Weights): Node {
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
  return decoderBlocks(config, weights, input('tokens', [TOKENS], 'int64'), (qkv, layer) =>
    rowAttention(config, qkv, inputs(layer), places, masks[config.layerKinds[layer]!.window]!),
  );
}

/**
 * Training form. Inputs of `packedForm`, and `places` [P] packed rows whose next token is predicted; `targets` [P]
 * those tokens; `inverse_temperature` []. The vocabulary projection runs at the P predicted positions only.
 */
export function trainingForm(config: DecoderConfig, weights: Weights): TrainingGraph {
  needHead(config, 'lm');
  const hidden = packedForm(config, weights);
  const logits = head(config, weights, gatherRows(hidden, input('places', ['P'], 'int64')));
  const logp = logSoftmax(mul(logits, input('inverse_temperature', [])));
  return {
    logits,
    logprobs: takeLast(logp, input('targets', ['P'], 'int64')),
    entropy: neg(reduceSum(mul(exp(logp), logp), [1])),
  };
}

/**
 * Training form of a model with a value head: values [P] of the hidden states at `places` [P], that is, of what was
 * read up to and including those tokens. Inputs of `packedForm` beside `places`.
 */
export function valueForm(config: DecoderConfig, weights: Weights): Node {
  needHead(config, 'score');
  const rows = gatherRows(packedForm(config, weights), input('places', ['P'], 'int64'));
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
