import type { Dim } from '../graph.ts';
import { primitive } from './primitive.ts';

const built = () => {
  throw new Error('inputs and constants are built by graph.ts, which gives their shape');
};

export const leaves = {
  input: primitive<{ name: string }>({
    infer: built,
    derivative: 'none',
    emit: (emission, _, node) => emission.data(node),
  }),

  constant: primitive({
    infer: built,
    derivative: 'none',
    emit: (emission, _, node) => emission.data(node),
  }),

  /** The value of a symbolic dimension as a float32 scalar. */
  dimension: primitive<{ dims: readonly Dim[] }>({
    infer: () => ({ shape: [], dtype: 'float32' }),
    derivative: 'none',
    emit: (emission, _, node) =>
      emission.node('Squeeze', [emission.node('Cast', [emission.dims(node.attributes.dims)], { to: 1 })]),
  }),
};
