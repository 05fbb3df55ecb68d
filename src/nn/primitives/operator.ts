import type { Dim, DType } from '../graph.ts';
import { type OnnxAttribute, primitive } from './primitive.ts';

/** One result of an operator of the runtime that is written as it is; `runtime-ops.ts` builds them. */
export interface OperatorAttributes {
  readonly [key: string]: string | number | readonly Dim[];
  readonly type: string;
  /** '' for the standard's. */
  readonly domain: '' | 'com.microsoft';
  /** Attributes of the operator, in JSON. */
  readonly attributes: string;
  /** The last input where it is not empty: an int64 vector, e.g. the sizes of a split. */
  readonly sizes: readonly Dim[];
  readonly results: number;
  /** Which of them this node is. */
  readonly result: number;
  readonly shape: readonly Dim[];
  readonly dtype: DType;
}

export const operators = {
  operator: primitive<OperatorAttributes>({
    infer: (_, { shape, dtype }) => ({ shape, dtype }),
    derivative: ({ attributes: { type } }) => {
      throw new Error(`the runtime's ${type} is written for sampling and has no derivative here`);
    },
    emit: (emission, inputs, { attributes: { type, domain, attributes, sizes, results, result } }) => {
      const all = sizes.length > 0 ? [...inputs, emission.dims(sizes)] : inputs;
      const parsed = JSON.parse(attributes) as Record<string, OnnxAttribute>;
      const first = emission.node(type, all, parsed, { domain: domain === '' ? undefined : domain, results });
      return result === 0 ? first : `${first}:${result}`;
    },
  }),
};
