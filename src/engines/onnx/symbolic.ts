import type { Ops } from '../../algorithms/ops.ts';
import { input, type Node, scalar } from '../../nn/graph.ts';
import * as op from '../../nn/ops.ts';

/**
 * The operations of a loss over graph nodes: vectors are [P], scalars []. `sequenceSum` multiplies by the graph input
 * `membership` [S, P], 1 where position p belongs to sequence s.
 */
export function symbolicOps(): Ops<Node> {
  const isTrue = (condition: Node) => op.greater(condition, scalar(0.5));
  let membership: Node | undefined;
  return {
    constant: scalar,
    add: op.add,
    sub: op.sub,
    mul: op.mul,
    div: op.div,
    neg: op.neg,
    exp: op.exp,
    log: op.log,
    abs: op.abs,
    softplus: op.softplus,
    sigmoid: op.sigmoid,
    min: (a, b) => op.where(op.lessEqual(a, b), a, b),
    max: (a, b) => op.where(op.lessEqual(b, a), a, b),
    clamp: op.clamp,
    less: (a, b) => op.cast(op.less(a, b), 'float32'),
    where: (condition, a, b) => op.where(isTrue(condition), a, b),
    stopGradient: op.stopGradient,
    sum: a => (a.shape.length === 0 ? a : op.reduceSum(a, [0])),
    sequenceSum: a => {
      membership ??= input('membership', ['S', 'P']);
      const column = op.reshape(op.expand(a, ['P']), ['P', 1]);
      const perSequence = op.matmul(membership, column);
      return op.reshape(op.matmul(op.transpose(membership, [1, 0]), perSequence), ['P']);
    },
  };
}
