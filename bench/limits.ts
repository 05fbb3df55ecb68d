import { Session } from '../src/engines/onnx/session.ts';
import { input } from '../src/nn/graph.ts';
import { emit } from '../src/nn/onnx.ts';
import { gemm, matmul, reduceMax } from '../src/nn/ops.ts';
import { type Case, THREADS } from './harness.ts';

/**
 * What the runtime reaches at its best on this machine: a large square product (arithmetic), a product of one row
 * with 256 MiB of weights (what decoding one sequence does), and a plain read of 256 MiB (memory).
 */

const SIDE = 1024;
const WIDE = 65536;
export const PRODUCT_FLOPS = 2 * SIDE ** 3;
export const READ_BYTES = 4 * SIDE * WIDE;

export interface Limit extends Case {
  close(): Promise<void>;
}

export async function productLimit(threads: number): Promise<Limit> {
  const [a, b] = [input('a', [SIDE, SIDE]), input('b', [SIDE, SIDE])];
  const values = { a: new Float32Array(SIDE * SIDE).fill(0.5), b: new Float32Array(SIDE * SIDE).fill(0.25) };
  const outputs = { c: new Float32Array(SIDE * SIDE) };
  return limit(`product, ${threads} threads`, emit({ c: matmul(a, b) }), threads, values, outputs);
}

export async function gemvLimit(weights: Float32Array): Promise<Limit> {
  const c = gemm(input('a', [1, SIDE]), input('b', [WIDE, SIDE]), { transA: false, transB: true });
  const values = { a: new Float32Array(SIDE).fill(0.5), b: weights };
  return limit('one row', emit({ c }), THREADS, values, { c: new Float32Array(WIDE) });
}

export async function readLimit(weights: Float32Array): Promise<Limit> {
  const c = reduceMax(input('b', [WIDE, SIDE]), [1]);
  return limit('read', emit({ c }), THREADS, { b: weights }, { c: new Float32Array(WIDE) });
}

/** 256 MiB. */
export const readWeights = () => new Float32Array(SIDE * WIDE).fill(0.25);

async function limit(
  name: string,
  model: ReturnType<typeof emit>,
  threads: number,
  feeds: Record<string, Float32Array>,
  outputs: Record<string, Float32Array>,
): Promise<Limit> {
  const session = await Session.create(model, { threads });
  return {
    name,
    run: async () => {
      await session.run(feeds, {}, { outputs });
      return undefined;
    },
    close: () => session.release(),
  };
}
