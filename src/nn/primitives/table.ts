import type { PrimitiveName } from '../graph.ts';
import { arithmetic } from './arithmetic.ts';
import { frozen } from './frozen.ts';
import { indexing } from './indexing.ts';
import { layout } from './layout.ts';
import { leaves } from './leaf.ts';
import { logic } from './logic.ts';
import { products } from './matmul.ts';
import { operators } from './operator.ts';
import type { Primitive } from './primitive.ts';
import { reductions } from './reduce.ts';
import { unaries } from './unary.ts';

/** The rules of every primitive. */
export const primitives: Readonly<Record<PrimitiveName, Primitive>> = {
  ...leaves,
  ...arithmetic,
  ...logic,
  ...unaries,
  ...products,
  ...frozen,
  ...layout,
  ...indexing,
  ...reductions,
  ...operators,
};
