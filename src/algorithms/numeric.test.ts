import { describe, expect, it } from 'vitest';
import { evaluate } from './numeric.ts';
import type { Loss, Ops } from './ops.ts';

type Body = <T>(ops: Ops<T>, x: T, y: T) => T;

/** Σ weights·f(x, y), so that every position has a gradient of its own. */
function lossOf(body: Body): Loss {
  return {
    key: 'test',
    inputs: ['y', 'weights'],
    entropy: false,
    build: (ops, { logprobs, inputs }) => ({
      loss: ops.sum(ops.mul(inputs.weights!, body(ops, logprobs, inputs.y!))),
      metrics: {},
    }),
  };
}

const x = [-1.3, -0.4, 0.2, 0.7, 1.9];
const y = [0.5, -0.8, 1.1, 0.6, -2];
const weights = [1, 2, -1, 0.5, 3];
const sequences = [2, 0, 3];

function value(loss: Loss, logprobs: readonly number[]) {
  return evaluate(loss, { sequences, logprobs, inputs: { y, weights } });
}

const bodies: Record<string, Body> = {
  add: (ops, a, b) => ops.add(a, b),
  sub: (ops, a, b) => ops.sub(b, a),
  mul: (ops, a, b) => ops.mul(ops.mul(a, a), b),
  div: (ops, a, b) => ops.add(ops.div(a, b), ops.div(b, a)),
  neg: (ops, a) => ops.neg(a),
  exp: (ops, a) => ops.exp(a),
  log: (ops, a) => ops.log(ops.mul(a, a)),
  abs: (ops, a) => ops.abs(a),
  softplus: (ops, a) => ops.softplus(a),
  sigmoid: (ops, a) => ops.sigmoid(a),
  min: (ops, a, b) => ops.min(a, ops.mul(a, b)),
  max: (ops, a, b) => ops.max(ops.mul(a, b), a),
  clamp: (ops, a) => ops.clamp(a, -1, 1),
  where: (ops, a, b) => ops.where(ops.less(a, b), ops.exp(a), ops.mul(a, b)),
  sum: (ops, a, b) => ops.mul(ops.sum(ops.mul(a, a)), b),
  sequenceSum: (ops, a, b) => ops.mul(ops.sequenceSum(ops.mul(a, b)), a),
  'scalar of a sum': (ops, a) => ops.mul(ops.add(ops.sum(a), ops.constant(2)), a),
};

describe('evaluate', () => {
  it.each(Object.keys(bodies))('gradient of %s equals finite differences', name => {
    const loss = lossOf(bodies[name]!);
    const { gradient } = value(loss, x);
    // Central differences in float64: relative error about h² times the curvature (up to 1e3 here) and 1e-16 / h.
    const h = 1e-5;
    for (const i of x.keys()) {
      const shifted = (by: number) => value(loss, x.with(i, x[i]! + by)).loss;
      const slope = (shifted(h) - shifted(-h)) / (2 * h);
      expect(Math.abs(gradient.logprobs[i]! - slope)).toBeLessThan(1e-7 * (1 + Math.abs(slope)));
    }
  });

  it('cuts the gradient at stopGradient and comparisons', () => {
    const loss = lossOf((ops, a, b) => ops.add(ops.stopGradient(ops.mul(a, a)), ops.less(a, b)));
    expect([...value(loss, x).gradient.logprobs]).toEqual([0, 0, 0, 0, 0]);
  });

  it('gives the gradient to the first operand where min and max tie, and at the bounds of a clamp', () => {
    const tie = lossOf((ops, a) => ops.add(ops.min(a, ops.stopGradient(a)), ops.max(ops.stopGradient(a), a)));
    expect([...value(tie, x).gradient.logprobs]).toEqual(weights);
    const bound = lossOf((ops, a) => ops.clamp(a, -0.4, 0.7));
    expect([...value(bound, x).gradient.logprobs]).toEqual([0, 2, -1, 0.5, 0]);
  });

  it('does not let NaN through the branch that where leaves out', () => {
    const loss = lossOf((ops, a) => ops.where(ops.less(a, ops.constant(0)), a, ops.log(a)));
    const { loss: sum, gradient } = evaluate(loss, {
      sequences: [2],
      logprobs: [-1, 2],
      inputs: { y: [0, 0], weights: [1, 1] },
    });
    expect(sum).toBe(-1 + Math.log(2));
    expect([...gradient.logprobs]).toEqual([1, 0.5]);
  });

  it('is zero on an empty batch', () => {
    const result = evaluate(lossOf(bodies.exp!), { sequences: [], logprobs: [], inputs: { y: [], weights: [] } });
    expect(result).toEqual({ loss: 0, metrics: {}, gradient: { logprobs: new Float64Array(0) } });
  });

  it('names what is missing or has the wrong length', () => {
    const loss = lossOf(bodies.add!);
    expect(() => evaluate(loss, { sequences, logprobs: x, inputs: { y } })).toThrow("reads 'weights'");
    expect(() => evaluate(loss, { sequences: [4], logprobs: x, inputs: { y, weights } })).toThrow(
      "'logprobs' has 5 values, but the sequences have 4 predicted positions",
    );
    const vector: Loss = { ...loss, build: (_, { logprobs }) => ({ loss: logprobs, metrics: {} }) };
    expect(() => value(vector, x)).toThrow("'loss' must be a scalar");
  });
});
