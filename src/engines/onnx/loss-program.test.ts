import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyPositions, LOSSES } from '../../../tests/support/losses.ts';
import { evaluate } from '../../algorithms/numeric.ts';
import type { Loss, LossContext, Ops } from '../../algorithms/ops.ts';
import { record, replay } from './loss-program.ts';

/** The loss as it arrives on the other side of a message. */
function afterMessage(loss: Loss): Loss {
  const program = structuredClone(record(loss));
  const { key, inputs, entropy, values } = program;
  const build = <T>(ops: Ops<T>, context: LossContext<T>) =>
    replay(program, ops, { ...context, input: name => context.inputs[name]! });
  return { key, inputs, entropy, values, build };
}

describe.each(LOSSES.map(loss => [loss.key, loss] as const))('%s', (_, loss) => {
  it('is the same after recording, sending and replaying', () => {
    const sent = afterMessage(loss);
    fc.assert(
      fc.property(anyPositions, positions => {
        expect(evaluate(sent, positions)).toEqual(evaluate(loss, positions));
      }),
      { numRuns: 30 },
    );
  });
});

describe('a recorded loss', () => {
  it('keeps the operations in order, and their constants', () => {
    const loss: Loss = {
      key: 'test',
      inputs: ['a'],
      entropy: true,
      build: (ops, { logprobs, inputs, entropy }) => {
        const bounded = ops.clamp(ops.sub(logprobs, inputs.a!), -1, 2);
        return { loss: ops.sum(ops.mul(bounded, ops.constant(3))), metrics: { entropy: ops.sum(entropy!) } };
      },
    };
    expect(record(loss)).toEqual({
      key: 'test',
      inputs: ['a'],
      entropy: true,
      values: false,
      instructions: [
        { op: 'logprobs' },
        { op: 'input', name: 'a' },
        { op: 'entropy' },
        { op: 'sub', args: [0, 1] },
        { op: 'clamp', args: [3], low: -1, high: 2 },
        { op: 'constant', value: 3 },
        { op: 'mul', args: [4, 5] },
        { op: 'sum', args: [6] },
        { op: 'sum', args: [2] },
      ],
      loss: 7,
      metrics: { entropy: 8 },
    });
  });

  it('is not replayed without what it reads', () => {
    const sum: Loss = {
      key: 'entropy only',
      inputs: [],
      entropy: true,
      build: (ops, { entropy }) => ({ loss: ops.sum(entropy!), metrics: {} }),
    };
    const again: Loss = {
      ...sum,
      build: (ops, { logprobs }) => replay(record(sum), ops, { logprobs, input: () => logprobs }),
    };
    expect(() => evaluate(again, { sequences: [1], logprobs: [-1], entropy: [1], inputs: {} })).toThrow(
      "the loss entropy only reads 'entropy', which is not here",
    );
  });
});
