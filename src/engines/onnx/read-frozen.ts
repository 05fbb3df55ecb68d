import { createHash } from 'node:crypto';
import { type FrozenDType, type FrozenMatrix, freeze } from '../../nn/frozen.ts';
import { isMatrixOfLayer, type Parameter, tensorPlaces } from '../../nn/models/parameters.ts';
import { type OpenedModel, type OpenOptions, type OpenTensors, openModelTensors } from './open-model.ts';

/** A model that is never in memory as a whole in float32. */
export interface FrozenModel extends Omit<OpenedModel, 'weights'> {
  /** Matrices of layers, by parameter name. */
  readonly matrices: ReadonlyMap<string, FrozenMatrix>;
  /** The other parameters, by name. */
  readonly whole: Readonly<Record<string, Float32Array>>;
  /** As `baseDigest` of all weights. */
  readonly digest: string;
}

/** Reads a checkpoint directory parameter by parameter, and keeps the matrices of layers in few bits. */
export function readFrozen(directory: string, options: OpenOptions, dtype: FrozenDType): FrozenModel {
  const tensors = openModelTensors(directory, options);
  const { rawConfig, config, layout } = tensors;
  const matrices = new Map<string, FrozenMatrix>();
  const whole: Record<string, Float32Array> = {};
  const hash = createHash('sha256');
  try {
    for (const parameter of layout) {
      const { name, shape, parts } = parameter;
      const values = readParameter(tensors, parameter);
      hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
      if (isMatrixOfLayer(parameter)) matrices.set(name, freeze(dtype, values, shape[1]!, parts[0]!.tensor));
      else whole[name] = values;
    }
  } finally {
    tensors.close();
  }
  return { rawConfig, config, layout, matrices, whole, digest: hash.digest('hex') };
}

function readParameter(tensors: OpenTensors, parameter: Parameter): Float32Array {
  const values = new Float32Array(parameter.size);
  for (const place of tensorPlaces([parameter])) values.set(tensors.read(place), place.offset - parameter.offset);
  return values;
}
