import type { FrozenDType } from '../frozen.ts';
import { input, type Node } from '../graph.ts';
import type { Adapter } from './lora.ts';
import type { Parameter } from './parameters.ts';

/** How graphs of a model read its parameters. */
export interface Weights {
  (name: string): Node;
  /** Changes the projections that it adapts. */
  readonly adapter?: Adapter | undefined;
  /** Names of the blocks of rows under which a matrix is given (see `rowBlocks`). */
  readonly blocks?: ReadonlyMap<string, readonly string[]> | undefined;
  /** What the matrices of layers are kept in where that is not float32 (see frozen-base.ts). */
  readonly frozen?: FrozenDType | undefined;
}

/** Graph inputs for every parameter of the layout, those of the adapter among them, under the parameter's name. */
export function weightInputs(
  layout: readonly Parameter[],
  { adapter, blocks, frozen }: Pick<Weights, 'adapter' | 'blocks' | 'frozen'> = {},
): Weights {
  const nodes = new Map(layout.map(({ name, shape }) => [name, input(name, shape)]));
  const find = (name: string) => {
    const node = nodes.get(name);
    if (node === undefined) throw new Error(`the model has no parameter '${name}'`);
    return node;
  };
  return Object.assign(find, { adapter, blocks, frozen });
}
