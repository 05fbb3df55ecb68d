import { constant, input } from '../../nn/graph.ts';
import { emit } from '../../nn/onnx.ts';
import { quantizedLinear, quantizeWeights } from '../../nn/runtime-ops.ts';
import { Session } from './session.ts';

const SIZE = 64;
let saturates: Promise<boolean> | undefined;

/**
 * Whether products of 8-bit integers saturate on this processor: AVX2 and AVX-512 without VNNI add pairs of products in
 * 16 bits. The runtime then has an exact way, slower also where there is no need for it. Found out once, by a product
 * of the largest values.
 */
export function int8Saturates(): Promise<boolean> {
  saturates ??= probe();
  return saturates;
}

async function probe(): Promise<boolean> {
  const ones = () => new Float32Array(SIZE * SIZE).fill(1);
  const weights = quantizeWeights(constant(ones(), [SIZE, SIZE]));
  const session = await Session.create(emit({ y: quantizedLinear(input('x', [SIZE, SIZE]), weights) }), { threads: 1 });
  try {
    const { y } = await session.run({ x: ones() });
    return (y as Float32Array).some(value => Math.abs(value - SIZE) > 1e-3);
  } finally {
    await session.release();
  }
}
