import { input, type Node } from '../graph.ts';
import { linear } from '../ops.ts';
import { quantizedLinear, quantizeWeights } from '../runtime-ops.ts';
import { headName } from './decoder.ts';
import type { DecoderConfig } from './families.ts';
import { baseLinear } from './frozen-base.ts';
import { type Adapter, adapt, mergedWeight } from './lora.ts';
import type { Weights } from './weights.ts';

/** How the sampling forms read the policy: its vectors and embedding by name, its matrices as what they do. */
export interface PolicyWeights {
  readonly tensor: (name: string) => Node;
  /** x [N, in] → [N, out] by the matrix of that name, without its bias. */
  readonly project: (x: Node, name: string) => Node;
}

/** Weights that change between two runs: an adapter is applied beside its base. */
export function floatWeights(weights: Weights): PolicyWeights {
  return {
    tensor: weights,
    project: (x, name) => {
      const result = baseLinear(weights, x, name);
      return weights.adapter ? adapt(weights.adapter, weights, name, x, result) : result;
    },
  };
}

/** Name of the embedding where it is the output projection: the same values, looked up by row under their own name. */
export const TIED_HEAD = 'embed:head';

/**
 * Weights that are part of the model, where the runtime prepares them once: what `mergedLayer` gives of an adapter. The
 * embedding stays an input, for nothing is prepared where rows are looked up.
 */
export function fixedWeights(weights: Weights): PolicyWeights {
  const matrix = (name: string) => {
    if (name === 'embed') return input(TIED_HEAD, weights(name).shape);
    return weights.adapter?.projections.has(name) ? input(mergedName(name), weights(name).shape) : weights(name);
  };
  return { tensor: weights, project: (x, name) => linear(x, matrix(name)) };
}

const mergedName = (matrix: string) => `${matrix}:merged`;
const MATRICES = ['qkv', 'o', 'gate_up', 'down'];

/**
 * Inputs of `fixedWeights`, by name: the matrices of layer 0, and so of any layer, that the adapter changes. Merged
 * inside a graph of the whole policy, every matrix would be held several times at once.
 */
export function mergedLayer(weights: Weights, adapter: Adapter): Record<string, Node> {
  const names = MATRICES.map(name => `layers.0.${name}`).filter(name => adapter.projections.has(name));
  return Object.fromEntries(names.map(name => [mergedName(name), mergedWeight(adapter, weights, name)]));
}

const valuesName = (matrix: string) => `${matrix}:int8`;
const scalesName = (matrix: string) => `${matrix}:scales`;

/** Matrices in 8 bits under the names that `quantization` gives them, an adapter merged; vectors stay as they are. */
export function quantizedWeights(weights: Weights): PolicyWeights {
  return {
    tensor: weights,
    project: (x, name) => {
      const [out, inner] = weights(name).shape;
      const values = input(valuesName(name), [inner!, out!], 'int8');
      return quantizedLinear(x, { values, scales: input(scalesName(name), [out!]) });
    },
  };
}

/** Inputs of `quantizedWeights`, by name, for the matrices of layer 0, merged with an adapter, and so of any layer. */
export function quantizedLayer(weights: Weights): Record<string, Node> {
  return quantized(
    weights,
    MATRICES.map(name => `layers.0.${name}`),
  );
}

/** Inputs of `quantizedWeights` for the vocabulary. */
export function quantizedHead(config: DecoderConfig, weights: Weights): Record<string, Node> {
  return quantized(weights, [headName(config)]);
}

function quantized(weights: Weights, names: readonly string[]): Record<string, Node> {
  const { adapter } = weights;
  return Object.fromEntries(
    names.flatMap(name => {
      const { values, scales } = quantizeWeights(adapter ? mergedWeight(adapter, weights, name) : weights(name));
      return [
        [valuesName(name), values],
        [scalesName(name), scales],
      ];
    }),
  );
}
