import type { Dim, Node } from '../graph.ts';
import { sameShape, showShape, sizeOf } from '../shape.ts';
import { expandTarget } from './layout.ts';
import { type Emission, primitive, requireDType, requireRank } from './primitive.ts';

/** float32 zeros of a shape, for the scatters to write into. */
function zeros(emission: Emission, shape: readonly Dim[]): string {
  return emission.node('Expand', [emission.scalar(0), emission.dims(shape)]);
}

const lastAxis = (emission: Emission) => emission.dims([-1]);

/** x [n, d], two index vectors, the first as long as the result. */
function inferMovedRows(op: string, [x, index, inverse]: readonly Node[]) {
  requireRank(op, x!, 2, 'x');
  requireDType(op, x!, 'float32');
  for (const each of [index!, inverse!]) {
    requireDType(op, each, 'int64');
    requireRank(op, each, 1, 'an index');
  }
  if (inverse!.shape[0] !== x!.shape[0]) {
    throw new RangeError(`${op}: the inverse index ${showShape(inverse!.shape)} does not fit x ${showShape(x!.shape)}`);
  }
  return { shape: [index!.shape[0]!, x!.shape[1]!], dtype: 'float32' as const };
}

export const indexing = {
  // x [R, ...], index [P...] -> [P..., ...]. Indices may repeat.
  gatherRows: primitive({
    infer: ([x, index]) => {
      requireDType('gatherRows', index!, 'int64');
      if (x!.shape.length === 0) throw new RangeError('gatherRows: x has no axis to gather along');
      return { shape: [...index!.shape, ...x!.shape.slice(1)], dtype: x!.dtype };
    },
    derivative: ({ inputs: [x, index] }, dy, ops) => {
      const [rows, ...rest] = x!.shape;
      const count = sizeOf(index!.shape);
      const updates = ops.reshape(dy, [count, sizeOf(rest)]);
      return [ops.reshape(ops.scatterAddRows(ops.reshape(index!, [count]), updates, rows!), x!.shape), undefined];
    },
    emit: (emission, inputs) => emission.node('Gather', inputs, { axis: 0 }),
  }),

  // index [P], updates [P, d] -> [rows, d]. ScatterElements, because ScatterND with reduction loses updates when
  // several threads meet at one row.
  scatterAddRows: primitive<{ rows: readonly [Dim] }>({
    infer: ([index, updates], { rows: [rows] }) => {
      requireDType('scatterAddRows', index!, 'int64');
      requireDType('scatterAddRows', updates!, 'float32');
      requireRank('scatterAddRows', index!, 1, 'the index');
      requireRank('scatterAddRows', updates!, 2, 'updates');
      if (index!.shape[0] !== updates!.shape[0]) {
        throw new RangeError(
          `scatterAddRows: index ${showShape(index!.shape)} and updates ${showShape(updates!.shape)} differ in length`,
        );
      }
      return { shape: [rows, updates!.shape[1]!], dtype: 'float32' };
    },
    derivative: ({ inputs: [index] }, dy, ops) => [undefined, ops.gatherRows(dy, index!)],
    emit: (emission, [index, updates], node) => {
      const shape = node.inputs[1]!.shape;
      const column = emission.node('Unsqueeze', [index!, lastAxis(emission)]);
      const target = emission.node('Expand', [column, emission.dims(expandTarget([shape[0]!, 1], shape))]);
      return emission.node('ScatterElements', [zeros(emission, node.shape), target, updates!], {
        axis: 0,
        reduction: 'add',
      });
    },
  }),

  padRows: primitive({
    infer: inputs => inferMovedRows('padRows', inputs),
    derivative: ({ inputs: [, , unpad] }, dy, ops) => [ops.gatherRows(dy, unpad!), undefined, undefined],
    emit: (emission, [x, pad]) => emission.node('Gather', [x!, pad!], { axis: 0 }),
  }),

  unpadRows: primitive({
    infer: inputs => {
      const [y, , , real] = inputs;
      requireDType('unpadRows', real!, 'float32');
      if (!sameShape(real!.shape, [y!.shape[0]!, 1])) {
        throw new RangeError(`unpadRows: real is ${showShape(real!.shape)}, needs ${showShape([y!.shape[0]!, 1])}`);
      }
      return inferMovedRows('unpadRows', inputs);
    },
    derivative: ({ inputs: [, unpad, pad, real] }, dy, ops) => [
      ops.mul(ops.padRows(dy, pad!, unpad!), real!),
      undefined,
      undefined,
      undefined,
    ],
    emit: (emission, [y, unpad]) => emission.node('Gather', [y!, unpad!], { axis: 0 }),
  }),

  // x [..., V], index [...] -> [...]
  takeLast: primitive({
    infer: ([x, index]) => {
      requireDType('takeLast', index!, 'int64');
      if (x!.shape.length === 0 || !sameShape(x!.shape.slice(0, -1), index!.shape)) {
        throw new RangeError(`takeLast: index ${showShape(index!.shape)} does not fit x ${showShape(x!.shape)}`);
      }
      return { shape: index!.shape, dtype: x!.dtype };
    },
    derivative: ({ inputs: [x, index] }, dy, ops) => [ops.putLast(index!, dy, x!.shape.at(-1)!), undefined],
    emit: (emission, [x, index]) => {
      const column = emission.node('Unsqueeze', [index!, lastAxis(emission)]);
      return emission.node('Squeeze', [
        emission.node('GatherElements', [x!, column], { axis: -1 }),
        lastAxis(emission),
      ]);
    },
  }),

  // index [...], values [...] -> [..., size]: the values at their indices, zero elsewhere.
  putLast: primitive<{ size: readonly [Dim] }>({
    infer: ([index, values], { size: [size] }) => {
      requireDType('putLast', index!, 'int64');
      requireDType('putLast', values!, 'float32');
      if (!sameShape(index!.shape, values!.shape)) {
        throw new RangeError(`putLast: index ${showShape(index!.shape)} and values ${showShape(values!.shape)} differ`);
      }
      return { shape: [...index!.shape, size], dtype: 'float32' };
    },
    derivative: ({ inputs: [index] }, dy, ops) => [undefined, ops.takeLast(dy, index!)],
    emit: (emission, inputs, node) => {
      const [index, values] = inputs.map(name => emission.node('Unsqueeze', [name, lastAxis(emission)]));
      return emission.node('ScatterElements', [zeros(emission, node.shape), index!, values!], { axis: -1 });
    },
  }),
};
