import { input, type Node } from '../graph.ts';
import { linear } from '../ops.ts';
import { quantizedLinear, quantizeWeights } from '../runtime-ops.ts';
import type { Weights } from './decoder.ts';
import type { DecoderConfig } from './families.ts';
import { adapt, mergedWeight } from './lora.ts';

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
      const result = linear(x, weights(name));
      return weights.adapter ? adapt(weights.adapter, weights, name, x, result) : result;
    },
  };
}

/** Name of the embedding where it is the output projection: the same values, looked up by row under their own name. */
export const TIED_HEAD = 'embed:head';

/**
 * Weights that are part of the model, where the runtime prepares them once: an adapter is merged into its base. The
 * embedding stays an input, for nothing is prepared where rows are looked up.
 */
export function fixedWeights(weights: Weights): PolicyWeights {
  const matrix = (name: string) => {
    if (name === 'embed') return input(TIED_HEAD, weights(name).shape);
    return weights.adapter ? mergedWeight(weights.adapter, weights, name) : weights(name);
  };
  return { tensor: weights, project: (x, name) => linear(x, matrix(name)) };
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

/** Quantises every matrix of the policy, merged with an adapter: the inputs of `quantizedWeights` by name. */
export function quantization(config: DecoderConfig, weights: Weights): Record<string, Node> {
  const outputs: Record<string, Node> = {};
  for (const name of matrices(config)) {
    const { adapter } = weights;
    const { values, scales } = quantizeWeights(adapter ? mergedWeight(adapter, weights, name) : weights(name));
    outputs[valuesName(name)] = values;
    outputs[scalesName(name)] = scales;
  }
  return outputs;
}

/** Names of the projections, the vocabulary's among them. */
function matrices({ layers, tied }: DecoderConfig): string[] {
  const ofLayer = (layer: number) => ['qkv', 'o', 'gate_up', 'down'].map(name => `layers.${layer}.${name}`);
  return [...Array.from({ length: layers }, (_, layer) => ofLayer(layer)).flat(), tied ? 'embed' : 'lm_head'];
}
