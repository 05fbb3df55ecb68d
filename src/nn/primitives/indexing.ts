import type { Dim } from '../graph.ts';
import { mulDims, sameShape, showShape, sizeOf } from '../shape.ts';
import { expandTarget } from './layout.ts';
import { type Emission, primitive, requireDType, requireRank } from './primitive.ts';

/** float32 zeros of a shape, for the scatters to write into. */
function zeros(emission: Emission, shape: readonly Dim[]): string {
  return emission.node('Expand', [emission.scalar(0), emission.dims(shape)]);
}

const lastAxis = (emission: Emission) => emission.dims([-1]);

export const indexing = {
  // x [..., R, ...], index [P...] -> [..., P..., ...]. Indices may repeat.
  gatherRows: primitive<{ axis: number }>({
    infer: ([x, index], { axis }) => {
      requireDType('gatherRows', index!, 'int64');
      if (x!.shape.length === 0) throw new RangeError('gatherRows: x has no axis to gather along');
      return { shape: [...x!.shape.slice(0, axis), ...index!.shape, ...x!.shape.slice(axis + 1)], dtype: x!.dtype };
    },
    derivative: ({ inputs: [x, index], attributes: { axis } }, dy, ops) => {
      const count = sizeOf(index!.shape);
      const before = x!.shape.slice(0, axis);
      const after = x!.shape.slice(axis + 1);
      const rows = x!.shape[axis]!;
      const [outer, inner] = [sizeOf(before), sizeOf(after)];
      const first = ops.transpose(ops.reshape(dy, [outer, count, inner]), [1, 0, 2]);
      const updates = ops.reshape(first, [count, mulDims(outer, inner)]);
      const summed = ops.reshape(ops.scatterAddRows(ops.reshape(index!, [count]), updates, rows), [rows, outer, inner]);
      return [ops.reshape(ops.transpose(summed, [1, 0, 2]), x!.shape), undefined];
    },
    emit: (emission, inputs, { attributes: { axis } }) => emission.node('Gather', inputs, { axis }),
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

  // x [h, N, d], places [M] -> [h, M, d]; the other indices say where x went, so that the derivative only gathers.
  spread: primitive({
    infer: ([x, places, own, extra, line, repeated]) => {
      requireDType('spread', x!, 'float32');
      requireRank('spread', x!, 3, 'x');
      requireDType('spread', repeated!, 'float32');
      for (const each of [places!, own!, extra!, line!]) requireDType('spread', each, 'int64');
      requireRank('spread', places!, 1, 'the index');
      requireRank('spread', extra!, 2, 'the index of further places');
      const [heads, rows, width] = x!.shape;
      for (const each of [own!, line!, repeated!]) {
        if (sizeOf(each.shape) === rows) continue;
        throw new RangeError(`spread: an index ${showShape(each.shape)} does not fit x ${showShape(x!.shape)}`);
      }
      return { shape: [heads!, places!.shape[0]!, width!], dtype: 'float32' };
    },
    derivative: ({ inputs: [, , own, extra, line, repeated] }, dy, ops) => {
      const further = ops.reduceSum(ops.gatherRows(dy, extra!, 1), [2]);
      const sum = ops.add(ops.gatherRows(dy, own!, 1), ops.mul(ops.gatherRows(further, line!, 1), repeated!));
      return [sum, ...Array.from({ length: 5 }, () => undefined)];
    },
    emit: (emission, [x, places]) => emission.node('Gather', [x!, places!], { axis: 1 }),
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

  // index [...], values [...] -> [..., size]: the values at their indices, zero elsewhere; or added to a third [..., size].
  putLast: primitive<{ size: readonly [Dim] }>({
    infer: ([index, values, onto], { size: [size] }) => {
      requireDType('putLast', index!, 'int64');
      for (const x of onto ? [values!, onto] : [values!]) requireDType('putLast', x, 'float32');
      if (!sameShape(index!.shape, values!.shape)) {
        throw new RangeError(`putLast: index ${showShape(index!.shape)} and values ${showShape(values!.shape)} differ`);
      }
      const shape = [...index!.shape, size];
      if (onto && !sameShape(onto.shape, shape)) {
        throw new RangeError(`putLast: ${showShape(shape)} cannot be added to ${showShape(onto.shape)}`);
      }
      return { shape, dtype: 'float32' };
    },
    derivative: ({ inputs: [index, , onto] }, dy, ops) => [undefined, ops.takeLast(dy, index!), onto && dy],
    emit: (emission, [index, values, onto], node) => {
      const [places, updates] = [index!, values!].map(name => emission.node('Unsqueeze', [name, lastAxis(emission)]));
      if (onto === undefined) {
        return emission.node('ScatterElements', [zeros(emission, node.shape), places!, updates!], { axis: -1 });
      }
      return emission.node('ScatterElements', [onto, places!, updates!], { axis: -1, reduction: 'add' });
    },
  }),
};
