import { type FrozenMatrix, frozenSizes } from '../frozen.ts';
import { input, type Node } from '../graph.ts';
import { add, frozenLinear, linear } from '../ops.ts';
import { isMatrixOfLayer } from './parameters.ts';
import type { Weights } from './weights.ts';

/**
 * The base of an adapter with the matrices of its layers in 8 or 4 bits. As in QLoRA the embedding and the vocabulary's
 * matrix stay in float32, and so do norms and biases.
 */

const valuesName = (matrix: string) => `${matrix}:frozen`;
const scalesName = (matrix: string) => `${matrix}:frozen_scales`;

/** What graphs read of such matrices, by input name. */
export function frozenInputs(
  matrices: ReadonlyMap<string, FrozenMatrix>,
): Record<string, Float32Array | Int8Array | Uint8Array> {
  return Object.fromEntries(
    [...matrices].flatMap(([name, { values, scales }]) => [
      [valuesName(name), values],
      [scalesName(name), scales],
    ]),
  );
}

/** x [N, in] times the base's matrix of that name → [N, out], in whatever way the matrix is kept. */
export function baseLinear(weights: Weights, x: Node, name: string, bias?: Node): Node {
  const { shape } = weights(name);
  const { frozen: dtype } = weights;
  if (dtype === undefined || !isMatrixOfLayer({ name, shape: shape as number[] }))
    return linear(x, weights(name), bias);
  const [rows, columns] = shape as [number, number];
  const sizes = frozenSizes(dtype, rows, columns);
  const product = frozenLinear(x, {
    dtype,
    shape: [rows, columns],
    values:
      dtype === 'int8'
        ? input(valuesName(name), [rows, columns], 'int8')
        : input(valuesName(name), [sizes.values], 'uint8'),
    scales: input(scalesName(name), [sizes.scales]),
  });
  return bias ? add(product, bias) : product;
}
