import { Session, type TensorData } from '../../src/engines/onnx/session.ts';
import { gradients } from '../../src/nn/derivative.ts';
import { type DType, input, type Node, type Shape } from '../../src/nn/graph.ts';
import { emit } from '../../src/nn/onnx.ts';
import { mul, reduceSum } from '../../src/nn/ops.ts';
import { type Bindings, evalDim } from '../../src/nn/shape.ts';

/** Runs nodes once on one thread. */
export async function evaluate(
  outputs: Readonly<Record<string, Node>>,
  feeds: Readonly<Record<string, TensorData>> = {},
  symbols: Bindings = {},
): Promise<Record<string, TensorData>> {
  const session = await Session.create(emit(outputs), { threads: 1, exactInt8: true });
  try {
    return await session.run(feeds, symbols);
  } finally {
    await session.release();
  }
}

/** The values of one node as numbers. */
export async function valuesOf(
  node: Node,
  feeds: Readonly<Record<string, TensorData>> = {},
  symbols: Bindings = {},
): Promise<number[]> {
  const { y } = await evaluate({ y: node }, feeds, symbols);
  return Array.from<number | bigint, number>(y!, Number);
}

export const floats = (...values: number[]) => Float32Array.from(values);
export const ints = (...values: number[]) => BigInt64Array.from(values, BigInt);

/** Deterministic values in (-1, 1) that are far from each other for neighbouring indices. */
export function wave(size: number, phase = 0): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => Math.sin(1 + 2.3 * i + phase * 1.7));
}

export interface GradientCase {
  readonly of: readonly Shape[];
  readonly symbols?: Bindings;
  /** Maps values in (-1, 1) to where the function is smooth; the index counts through each input. */
  readonly map?: (value: number, index: number, input: number) => number;
  /** Inputs that no gradient is asked for. */
  readonly fixed?: Readonly<Record<string, { shape: Shape; dtype: DType; data: TensorData }>>;
  readonly build: (inputs: readonly Node[], fixed: Readonly<Record<string, Node>>) => Node;
}

const STEP = 0.04;
/** Rounding of float32 and of the runtime's approximations of exp, tanh, …: at most 4 ulp of each value. */
const ROUNDING = 4 * 2 ** -24;

/**
 * Compares gradients with central differences of f(x) = Σ r·y(x), for fixed r, along every coordinate and three dense
 * directions. f is summed in float64 and the step is the one float32 really takes, so what is left is truncation,
 * which must fall with the square of the step (here to a quarter), and rounding divided by the step. The two steps
 * together cancel the square term (Richardson); that estimate must agree to 5e-4 of the directional derivative's
 * terms, the size of the fourth-order term at this step.
 * Returns one line for each violation.
 */
export async function gradientErrors(test: GradientCase): Promise<string[]> {
  const symbols = test.symbols ?? {};
  const xs = test.of.map((shape, i) => input(`x${i}`, shape));
  const fixed = Object.entries(test.fixed ?? {});
  const y = test.build(
    xs,
    Object.fromEntries(fixed.map(([name, { shape, dtype }]) => [name, input(name, shape, dtype)])),
  );
  const size = (shape: Shape) => shape.reduce<number>((product, dim) => product * evalDim(dim, symbols), 1);
  const r = wave(size(y.shape), 5);
  const grads = gradients(reduceSum(mul(y, input('r', y.shape))), xs);
  const session = await Session.create(emit({ y, ...Object.fromEntries(grads.map((node, i) => [`g${i}`, node])) }), {
    threads: 1,
  });
  const map = test.map ?? (value => value);
  const point = test.of.map((shape, k) => wave(size(shape), k).map((value, i) => map(value, i, k)));
  const others = { r, ...Object.fromEntries(fixed.map(([name, { data }]) => [name, data])) };
  const run = (x: readonly Float32Array[], fetch?: string[]) =>
    session.run({ ...others, ...Object.fromEntries(x.map((data, i) => [`x${i}`, data])) }, symbols, fetch && { fetch });

  /** [f, Σ|terms|] */
  const f = async (x: readonly Float32Array[]) => {
    const terms = Array.from((await run(x, ['y'])).y as Float32Array, (value, i) => value * r[i]!);
    return [terms.reduce((a, b) => a + b, 0), terms.reduce((a, b) => a + Math.abs(b), 0)] as const;
  };
  const results = await run(point);
  const analytic = grads.map((_, i) => results[`g${i}`] as Float32Array);

  const errors: string[] = [];
  for (const [name, direction] of directions(point)) {
    const [first, second] = await Promise.all(
      [STEP, STEP / 2].map(async step => {
        const moved = [1, -1].map(side =>
          point.map((x, k) => x.map((value, i) => value + side * step * direction[k]![i]!)),
        );
        const [[plus, size], [minus]] = await Promise.all([f(moved[0]!), f(moved[1]!)]);
        let [expected, scale] = [0, 0];
        for (const [k, gradient] of analytic.entries()) {
          for (const [i, g] of gradient.entries()) {
            const term = (g * (moved[0]![k]![i]! - moved[1]![k]![i]!)) / (2 * step);
            expected += term;
            scale += Math.abs(term);
          }
        }
        return { error: (plus - minus) / (2 * step) - expected, noise: (ROUNDING * size) / step, scale };
      }),
    );
    const { noise, scale } = second!;
    const show = `${first!.error.toExponential(2)}, ${second!.error.toExponential(2)} (noise ${noise.toExponential(2)})`;
    const extrapolated = (4 * second!.error - first!.error) / 3;
    if (!(Math.abs(extrapolated) <= 5e-4 * scale + 2 * noise)) {
      errors.push(`${name}: off by ${extrapolated.toExponential(2)} of ${scale.toExponential(2)}; errors ${show}`);
    }
    if (!(Math.abs(second!.error) <= 0.3 * Math.abs(first!.error) + 2 * noise + 1e-5 * scale)) {
      errors.push(`${name}: the error does not fall with the square of the step: ${show}`);
    }
  }
  await session.release();
  return errors;
}

function directions(point: readonly Float32Array[]): [string, Float32Array[]][] {
  const zeros = () => point.map(x => new Float32Array(x.length));
  const found: [string, Float32Array[]][] = [0, 1, 2].map(n => [
    `direction ${n}`,
    point.map((x, k) => wave(x.length, 7 + 3 * n + k)),
  ]);
  for (const [k, x] of point.entries()) {
    for (const i of x.keys()) {
      const unit = zeros();
      unit[k]![i] = 1;
      found.push([`input ${k}, element ${i}`, unit]);
    }
  }
  return found;
}
