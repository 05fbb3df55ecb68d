import { Float16Array } from '@petamoriken/float16';

/** Element types of checkpoints that are read, and their sizes in bytes. In memory everything is float32. */
export const DTYPE_BYTES = { F32: 4, F16: 2, BF16: 2 } as const;
export type Dtype = keyof typeof DTYPE_BYTES;

let float16Values: Float32Array | undefined;

/** Decodes 16-bit floats exactly; `into` is as long as `bits`. */
export function decode16(dtype: 'F16' | 'BF16', bits: Uint16Array, into: Float32Array): void {
  if (dtype === 'BF16') {
    const words = new Uint32Array(into.buffer, into.byteOffset, into.length);
    for (let i = 0; i < bits.length; i++) words[i] = bits[i]! << 16;
    return;
  }
  float16Values ??= Float32Array.from(new Float16Array(Uint16Array.from({ length: 65536 }, (_, i) => i).buffer));
  for (let i = 0; i < bits.length; i++) into[i] = float16Values[bits[i]!]!;
}

/** Rounds float32 to bfloat16, to nearest with ties to even. NaN stays NaN. */
export function encodeBFloat16(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const bits = new Uint16Array(values.length);
  for (let i = 0; i < bits.length; i++) {
    const word = words[i]!;
    bits[i] = Number.isNaN(values[i]!) ? 0x7fc0 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return bits;
}
