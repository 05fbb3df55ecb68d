import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyPositions, LOSSES, type Positions } from '../../../tests/support/losses.ts';
import { evaluate } from '../../algorithms/numeric.ts';
import type { Loss, LossContext, Ops } from '../../algorithms/ops.ts';
import { gradients } from '../../nn/derivative.ts';
import { input } from '../../nn/graph.ts';
import { emit } from '../../nn/onnx.ts';
import { record, replay } from './loss-program.ts';
import { Session } from './session.ts';
import { symbolicOps } from './symbolic.ts';
import { membership } from './units.ts';

const VARIABLES = ['logprobs', 'entropy', 'values'] as const;

/** The loss as the learner runs it: recorded, replayed over graph nodes, differentiated, emitted. */
async function symbolic(loss: Loss) {
  const nodes = {
    logprobs: input('logprobs', ['P']),
    entropy: input('entropy', ['P']),
    values: input('values', ['P']),
  };
  const replayed = replay(record(loss), symbolicOps(), { ...nodes, input: name => input(`loss.${name}`, ['P']) });
  const grads = gradients(
    replayed.loss,
    VARIABLES.map(name => nodes[name]),
  );
  const metrics = Object.entries(replayed.metrics).map(([name, node]) => [`metric.${name}`, node] as const);
  const outputs = { loss: replayed.loss, ...Object.fromEntries(metrics) };
  const session = await Session.create(
    emit({ ...outputs, ...Object.fromEntries(VARIABLES.map((name, i) => [`grad.${name}`, grads[i]!])) }),
    { threads: 1 },
  );
  return {
    release: () => session.release(),
    run: async ({ sequences, inputs, ...variables }: Positions) => {
      const offsets = [0];
      for (const count of sequences) offsets.push(offsets.at(-1)! + count);
      const feeds = Object.fromEntries(Object.entries(inputs).map(([name, values]) => [`loss.${name}`, values]));
      const results = await session.run(
        { ...variables, ...feeds, membership: membership(offsets, [...sequences.keys()]) },
        { P: offsets.at(-1)!, S: sequences.length },
      );
      return results as Record<string, Float32Array>;
    },
  };
}

/**
 * The graph computes in float32 and its reference in float64, from the same float32 numbers. A value is a sum of up to
 * 25 terms of at most about 10, each with a few roundings of 2^-24: 1e-6 for each position and of the value itself.
 */
const TOLERANCE = 1e-6;

async function compare(loss: Loss, arbitrary: fc.Arbitrary<Positions>, numRuns: number): Promise<void> {
  const { run, release } = await symbolic(loss);
  try {
    await fc.assert(
      fc.asyncProperty(arbitrary, async positions => {
        const expected = evaluate(loss, positions);
        const actual = await run(positions);
        const places = positions.logprobs.length;
        const near = (name: string, value: number, reference: number) => {
          const error = Math.abs(value - reference);
          if (!(error <= TOLERANCE * Math.max(places, Math.abs(reference)))) {
            expect.fail(`${name} is ${value}, expected ${reference}`);
          }
        };
        near('loss', actual.loss![0]!, expected.loss);
        for (const [name, value] of Object.entries(expected.metrics)) near(name, actual[`metric.${name}`]![0]!, value);
        for (const name of VARIABLES) {
          const reference = expected.gradient[name] ?? new Float64Array(places);
          for (const [i, value] of reference.entries()) {
            near(`d loss / d ${name}[${i}]`, actual[`grad.${name}`]![i]!, value);
          }
        }
      }),
      // The seed is fixed because a number within 1e-7 of the bound of a clip falls to either side of it.
      { numRuns, seed: 1 },
    );
  } finally {
    await release();
  }
}

it.each(LOSSES.map(loss => [loss.key, loss] as const))(
  '%s is the same on graph nodes and on arrays',
  async (_, loss) => {
    await compare(loss, anyPositions, 60);
  },
);

describe('each operation', () => {
  const one = <T>(ops: Ops<T>) => ops.constant(1);
  type Build = <T>(ops: Ops<T>, x: T, y: T) => T;
  const builds: Record<Exclude<keyof Ops<unknown>, 'sum'>, Build> = {
    constant: (ops, x) => ops.mul(x, ops.constant(0.5)),
    add: (ops, x, y) => ops.add(x, y),
    sub: (ops, x, y) => ops.sub(one(ops), ops.sub(x, y)),
    mul: (ops, x, y) => ops.mul(x, y),
    div: (ops, x, y) => ops.div(x, ops.add(ops.abs(y), one(ops))),
    neg: (ops, x) => ops.neg(x),
    exp: (ops, x) => ops.exp(x),
    log: (ops, x) => ops.log(ops.add(ops.abs(x), ops.constant(0.5))),
    abs: (ops, x) => ops.abs(x),
    softplus: (ops, x) => ops.softplus(ops.mul(x, ops.constant(30))),
    sigmoid: (ops, x) => ops.sigmoid(ops.mul(x, ops.constant(30))),
    // Equal operands as well: where they are, the gradient goes to the first.
    min: (ops, x, y) => ops.min(ops.mul(x, ops.constant(2)), ops.max(ops.add(x, x), y)),
    max: (ops, x, y) => ops.max(ops.mul(x, ops.constant(2)), ops.min(ops.add(x, x), y)),
    clamp: (ops, x) => ops.clamp(x, -2, -1),
    less: (ops, x, y) => ops.mul(x, ops.less(x, y)),
    where: (ops, x, y) => ops.where(ops.less(x, y), ops.mul(x, x), ops.constant(3)),
    stopGradient: (ops, x, y) => ops.mul(x, ops.stopGradient(ops.mul(x, y))),
    sequenceSum: (ops, x, y) => ops.mul(y, ops.exp(ops.mul(ops.constant(0.1), ops.sequenceSum(x)))),
  };
  // Of scalars: both count once for each position.
  const ofScalars: Record<string, Build> = {
    'sequenceSum of a scalar': (ops, x) => ops.mul(x, ops.sequenceSum(one(ops))),
    'sequenceSum of a sum': (ops, x) => ops.mul(x, ops.sequenceSum(ops.mul(ops.constant(0.01), ops.sum(x)))),
    'sum of a sum': (ops, x) => ops.add(x, ops.sum(ops.sum(ops.mul(x, ops.constant(0.1))))),
    'where between scalars': (ops, x) => ops.mul(x, ops.where(ops.less(x, one(ops)), ops.constant(2), one(ops))),
  };

  it.each(Object.entries({ ...builds, ...ofScalars }))('%s', async (name, build) => {
    const loss: Loss = {
      key: name,
      inputs: ['old'],
      entropy: true,
      build<T>(ops: Ops<T>, { logprobs, entropy, inputs }: LossContext<T>) {
        const out = build(ops, logprobs, ops.sub(inputs.old!, entropy!));
        return { loss: ops.sum(ops.mul(out, inputs.old!)), metrics: { plain: ops.sum(out) } };
      },
    };
    await compare(loss, anyPositions, 40);
  });

  it('never lets what is not chosen leak, in value or gradient', async () => {
    const loss: Loss = {
      key: 'selection',
      inputs: ['old'],
      entropy: false,
      build: (ops, { logprobs, inputs }) => {
        const valid = ops.less(inputs.old!, ops.constant(0));
        const difference = ops.where(valid, ops.sub(logprobs, inputs.old!), ops.constant(0));
        return { loss: ops.sum(ops.mul(difference, difference)), metrics: {} };
      },
    };
    const { run, release } = await symbolic(loss);
    const zero = new Float32Array(3);
    const results = await run({
      sequences: [3],
      logprobs: Float32Array.of(Number.NaN, -1, -2),
      entropy: zero,
      values: zero,
      inputs: { old: Float32Array.of(Number.NaN, -2, Number.POSITIVE_INFINITY) },
    });
    await release();
    expect([...results.loss!]).toEqual([1]);
    expect([...results['grad.logprobs']!]).toEqual([0, 2, 0]);
  });
});
