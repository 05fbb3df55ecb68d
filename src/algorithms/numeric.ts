import type { Loss, Ops } from './ops.ts';

/**
 * Evaluates a loss on arrays, with its gradient: reverse mode over vectors, in float64. It serves engines that take
 * per-token weights instead of a graph, and it is what the symbolic evaluation is tested against.
 */

export interface NumericContext {
  /** Predicted positions of each sequence; they sum to the length of every array below. */
  readonly sequences: readonly number[];
  readonly logprobs: ArrayLike<number>;
  readonly entropy?: ArrayLike<number>;
  readonly values?: ArrayLike<number>;
  readonly inputs: Readonly<Record<string, ArrayLike<number>>>;
}

export interface NumericResult {
  readonly loss: number;
  readonly metrics: Record<string, number>;
  /** d loss / d logprobs and, when the loss reads them, d loss / d entropy and d loss / d values. */
  readonly gradient: {
    readonly logprobs: Float64Array;
    readonly entropy?: Float64Array;
    readonly values?: Float64Array;
  };
}

/** @throws Error when an array is missing or has another length than the sequences say. */
export function evaluate(loss: Loss, context: NumericContext): NumericResult {
  const length = context.sequences.reduce((sum, n) => sum + n, 0);
  const array = (name: string, values: ArrayLike<number> | undefined) => {
    if (values === undefined) throw new Error(`loss '${loss.key}' reads '${name}', which was not given`);
    if (values.length !== length) {
      throw new Error(`'${name}' has ${values.length} values, but the sequences have ${length} predicted positions`);
    }
    return Float64Array.from(values);
  };

  const tape = new Tape(context.sequences);
  const logprobs = tape.variable(array('logprobs', context.logprobs));
  const entropy = loss.entropy ? tape.variable(array('entropy', context.entropy)) : undefined;
  const values = loss.values ? tape.variable(array('values', context.values)) : undefined;
  const inputs: Record<string, Vector> = {};
  for (const name of loss.inputs) inputs[name] = tape.data(array(name, context.inputs[name]));

  const built = loss.build(tape, { logprobs, inputs, ...(entropy && { entropy }), ...(values && { values }) });
  const metrics: Record<string, number> = {};
  for (const [name, metric] of Object.entries(built.metrics)) metrics[name] = scalar(name, metric);
  const value = scalar('loss', built.loss);
  tape.backward(built.loss);
  const gradient = {
    logprobs: logprobs.gradient!,
    ...(entropy && { entropy: entropy.gradient! }),
    ...(values && { values: values.gradient! }),
  };
  return { loss: value, metrics, gradient };
}

function scalar(name: string, vector: Vector): number {
  if (vector.values.length !== 1) {
    throw new Error(`'${name}' must be a scalar (a sum over positions), got ${vector.values.length} values`);
  }
  return vector.values[0]!;
}

/** One value per position, or a single one that broadcasts. `gradient` is present where the loss is differentiable. */
interface Vector {
  readonly values: Float64Array;
  readonly gradient?: Float64Array;
}

type Unary = (a: number) => number;
type Binary = (a: number, b: number) => number;

class Tape implements Ops<Vector> {
  readonly #sequences: readonly number[];
  readonly #backward: (() => void)[] = [];

  constructor(sequences: readonly number[]) {
    this.#sequences = sequences;
  }

  variable(values: Float64Array): Vector {
    return { values, gradient: new Float64Array(values.length) };
  }

  data(values: Float64Array): Vector {
    return { values };
  }

  backward(loss: Vector): void {
    if (loss.gradient === undefined) return;
    loss.gradient[0] = 1;
    for (const step of this.#backward.reverse()) step();
  }

  constant(value: number): Vector {
    return { values: Float64Array.of(value) };
  }

  add(a: Vector, b: Vector): Vector {
    return this.#binary(a, b, (x, y) => x + y, one, one);
  }

  sub(a: Vector, b: Vector): Vector {
    return this.#binary(
      a,
      b,
      (x, y) => x - y,
      one,
      () => -1,
    );
  }

  mul(a: Vector, b: Vector): Vector {
    return this.#binary(
      a,
      b,
      (x, y) => x * y,
      (_, y) => y,
      x => x,
    );
  }

  div(a: Vector, b: Vector): Vector {
    return this.#binary(
      a,
      b,
      (x, y) => x / y,
      (_, y) => 1 / y,
      (x, y) => -x / (y * y),
    );
  }

  neg(a: Vector): Vector {
    return this.#unary(
      a,
      x => -x,
      () => -1,
    );
  }

  exp(a: Vector): Vector {
    return this.#unary(a, Math.exp, Math.exp);
  }

  log(a: Vector): Vector {
    return this.#unary(a, Math.log, x => 1 / x);
  }

  abs(a: Vector): Vector {
    return this.#unary(a, Math.abs, Math.sign);
  }

  softplus(a: Vector): Vector {
    return this.#unary(a, x => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))), logistic);
  }

  sigmoid(a: Vector): Vector {
    return this.#unary(a, logistic, x => logistic(x) * logistic(-x));
  }

  min(a: Vector, b: Vector): Vector {
    const first: Binary = (x, y) => (x <= y ? 1 : 0);
    return this.#binary(a, b, Math.min, first, (x, y) => 1 - first(x, y));
  }

  max(a: Vector, b: Vector): Vector {
    const first: Binary = (x, y) => (x >= y ? 1 : 0);
    return this.#binary(a, b, Math.max, first, (x, y) => 1 - first(x, y));
  }

  clamp(a: Vector, low: number, high: number): Vector {
    return this.#unary(
      a,
      x => Math.min(Math.max(x, low), high),
      x => (x >= low && x <= high ? 1 : 0),
    );
  }

  less(a: Vector, b: Vector): Vector {
    return { values: this.#binary({ values: a.values }, { values: b.values }, (x, y) => (x < y ? 1 : 0)).values };
  }

  where(condition: Vector, a: Vector, b: Vector): Vector {
    const length = broadcast(broadcast(condition.values.length, a.values.length), b.values.length);
    const chosen = (i: number) => (at(condition.values, i) !== 0 ? a : b);
    const out = this.#result(length, a, b);
    for (let i = 0; i < length; i++) out.values[i] = at(chosen(i).values, i);
    this.#record(out, gradient => {
      for (let i = 0; i < length; i++) accumulate(chosen(i), i, gradient[i]!);
    });
    return out;
  }

  stopGradient(a: Vector): Vector {
    return { values: a.values };
  }

  sum(a: Vector): Vector {
    const out = this.#result(1, a);
    for (const value of a.values) out.values[0]! += value;
    this.#record(out, gradient => {
      for (let i = 0; i < a.values.length; i++) accumulate(a, i, gradient[0]!);
    });
    return out;
  }

  sequenceSum(a: Vector): Vector {
    const length = this.#sequences.reduce((sum, n) => sum + n, 0);
    const out = this.#result(length, a);
    this.#eachSequence((start, end) => {
      let sum = 0;
      for (let i = start; i < end; i++) sum += at(a.values, i);
      out.values.fill(sum, start, end);
    });
    this.#record(out, gradient => {
      this.#eachSequence((start, end) => {
        let sum = 0;
        for (let i = start; i < end; i++) sum += gradient[i]!;
        for (let i = start; i < end; i++) accumulate(a, i, sum);
      });
    });
    return out;
  }

  #eachSequence(visit: (start: number, end: number) => void): void {
    let start = 0;
    for (const n of this.#sequences) {
      visit(start, start + n);
      start += n;
    }
  }

  #unary(a: Vector, forward: Unary, derivative: Unary): Vector {
    const out = this.#result(a.values.length, a);
    for (let i = 0; i < out.values.length; i++) out.values[i] = forward(a.values[i]!);
    this.#record(out, gradient => {
      for (let i = 0; i < gradient.length; i++) accumulate(a, i, gradient[i]! * derivative(a.values[i]!));
    });
    return out;
  }

  #binary(a: Vector, b: Vector, forward: Binary, da: Binary = one, db: Binary = one): Vector {
    const out = this.#result(broadcast(a.values.length, b.values.length), a, b);
    for (let i = 0; i < out.values.length; i++) out.values[i] = forward(at(a.values, i), at(b.values, i));
    this.#record(out, gradient => {
      for (let i = 0; i < gradient.length; i++) {
        const [x, y] = [at(a.values, i), at(b.values, i)];
        if (a.gradient) accumulate(a, i, gradient[i]! * da(x, y));
        if (b.gradient) accumulate(b, i, gradient[i]! * db(x, y));
      }
    });
    return out;
  }

  #result(length: number, ...operands: readonly Vector[]): Vector {
    const values = new Float64Array(length);
    return operands.some(operand => operand.gradient) ? { values, gradient: new Float64Array(length) } : { values };
  }

  #record(out: Vector, step: (gradient: Float64Array) => void): void {
    const { gradient } = out;
    if (gradient) this.#backward.push(() => step(gradient));
  }
}

const one = () => 1;

function logistic(x: number): number {
  return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
}

function broadcast(a: number, b: number): number {
  if (a !== b && a !== 1 && b !== 1) throw new Error(`vectors of ${a} and ${b} positions do not go together`);
  return a === 1 ? b : a;
}

function at(values: Float64Array, i: number): number {
  return values.length === 1 ? values[0]! : values[i]!;
}

function accumulate(target: Vector, i: number, value: number): void {
  if (target.gradient) target.gradient[target.gradient.length === 1 ? 0 : i]! += value;
}
