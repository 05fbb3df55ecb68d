import { BLOCK, NF4 } from '../frozen.ts';
import { constant } from '../graph.ts';
import { showShape } from '../shape.ts';
import { ONNX_TYPE } from './logic.ts';
import { type Emission, primitive, requireDType, requireRank } from './primitive.ts';

interface FrozenAttributes {
  readonly [key: string]: string | number | boolean;
  /** 'int8' or 'nf4'; see frozen.ts. */
  readonly dtype: string;
  readonly rows: number;
  readonly columns: number;
  /** x W instead of x Wᵀ. */
  readonly back: boolean;
}

export const frozen = {
  // x [N, columns], W [rows, columns] as values and scales → x Wᵀ [N, rows]; back: x [N, rows] → x W [N, columns].
  frozenProduct: primitive<FrozenAttributes>({
    infer: ([x, values, scales], { dtype, rows, columns, back }) => {
      requireRank('frozenProduct', x!, 2, 'x');
      requireDType('frozenProduct', x!, 'float32');
      requireDType('frozenProduct', values!, dtype === 'int8' ? 'int8' : 'uint8');
      requireDType('frozenProduct', scales!, 'float32');
      const [inner, out] = back ? [rows, columns] : [columns, rows];
      if (x!.shape[1] !== inner) {
        throw new RangeError(
          `frozenProduct: x is ${showShape(x!.shape)}, the matrix [${rows}, ${columns}]${back ? '' : ' transposed'}`,
        );
      }
      return { shape: [x!.shape[0]!, out], dtype: 'float32' };
    },
    derivative: ({ inputs: [, values, scales], attributes }, dy, ops) => [
      ops.frozenProduct(dy, values!, scales!, { ...attributes, back: !attributes.back }),
      undefined,
      undefined,
    ],
    emit: (emission, [x, values, scales], { attributes: { dtype, rows, columns, back } }) => {
      if (dtype === 'nf4' && !back) {
        const attributes = { K: columns, N: rows, block_size: BLOCK, quant_type: 1 };
        return emission.node('MatMulBnb4', [x!, values!, scales!], attributes, { domain: 'com.microsoft' });
      }
      const thaw = dtype === 'int8' ? thawInt8 : thawNf4;
      const matrix = thaw(emission, x!, [values!, scales!], [rows, columns]);
      return emission.node('Gemm', [x!, matrix], { transA: 0, transB: Number(!back) });
    },
  }),
};

/**
 * The matrix in float32, not before x is known: it would otherwise be made once for the way forward and the way back and
 * kept in between, or made long before it is read.
 */
type Thaw = (
  emission: Emission,
  x: string,
  [values, scales]: readonly [string, string],
  shape: readonly [number, number],
) => string;

const thawInt8: Thaw = (emission, x, [values, scales]) => {
  const known = emission.node('Add', [scales, zeroAfter(emission, x, ONNX_TYPE.float32)]);
  return emission.node('DequantizeLinear', [values, known], { axis: 0 });
};

/** The two elements of each byte. */
const PAIRS = Float32Array.from({ length: 512 }, (_, i) => NF4[i % 2 === 0 ? i >> 5 : (i >> 1) & 15]!);

// MatMulBnb4 has transB = 0 for the way back, and its CPU kernel then multiplies with another matrix (1.30).
const thawNf4: Thaw = (emission, x, [values, scales], shape) => {
  const [size, count] = [shape[0] * shape[1], Math.ceil((shape[0] * shape[1]) / BLOCK)];
  const known = emission.node('BitwiseOr', [values, zeroAfter(emission, x, ONNX_TYPE.uint8)]);
  const bytes = emission.node('Cast', [known], { to: ONNX_TYPE.int32 });
  const pairs = emission.node('Gather', [emission.data(constant(PAIRS, [256, 2])), bytes]);
  const blocks = emission.node('Reshape', [pairs, emission.dims([count, BLOCK])]);
  const elements = emission.node('Mul', [blocks, emission.node('Reshape', [scales, emission.dims([count, 1])])]);
  if (size === count * BLOCK) return emission.node('Reshape', [elements, emission.dims(shape)]);
  const flat = emission.node('Reshape', [elements, emission.dims([count * BLOCK])]);
  const whole = emission.node('Slice', [flat, emission.dims([0]), emission.dims([size])]);
  return emission.node('Reshape', [whole, emission.dims(shape)]);
};

/** [1] 0, once x is known. */
function zeroAfter(emission: Emission, x: string, type: number): string {
  const corner = emission.node('Slice', [x, emission.dims([0, 0]), emission.dims([1, 1])]);
  const first = emission.node('Reshape', [corner, emission.dims([1])]);
  // No number is less than itself, and NaN is not either.
  return emission.node('Cast', [emission.node('Less', [first, first])], { to: type });
}
