import { createNode, type Node } from './graph.ts';
import * as ops from './ops.ts';

/**
 * The way back through nodes that `recomputed` made: copies of them, computed from the values that come into their
 * region. A copy must not be computed before it is needed, or it would be kept as the original was. The incoming values
 * therefore wait: a zero is added to them that the runtime can only know once the region behind is done with.
 */
export class Recomputation {
  readonly #copies = new Map<Node, Node>();
  #region: number | undefined;
  /** The zero that the region which is being gone through waits for. */
  #zero: Node | undefined;

  /** Whether the way back enters another region with this node. */
  enters(node: Node): boolean {
    return node.region !== undefined && node.region !== this.#region;
  }

  /** @param done what has to be computed first */
  enter(node: Node, done: readonly Node[]): void {
    this.#region = node.region;
    this.#copies.clear();
    this.#zero = zeroAfter(done);
  }

  /** The node with the values that the way back may read. */
  copyOf(node: Node): Node {
    if (this.#zero === undefined || node.region !== this.#region) return node;
    return this.#copy(node, this.#zero);
  }

  #copy(node: Node, zero: Node): Node {
    let copy = this.#copies.get(node);
    if (copy === undefined) {
      copy = this.#makeCopy(node, zero);
      this.#copies.set(node, copy);
    }
    return copy;
  }

  #makeCopy(node: Node, zero: Node): Node {
    // What is fed costs nothing to keep, and indices and masks little.
    if (node.region !== this.#region)
      return node.inputs.length === 0 || node.dtype !== 'float32' ? node : ops.add(node, zero);
    const inputs = node.inputs.map(each => this.#copy(each, zero));
    if (inputs.every((each, i) => each === node.inputs[i])) return node;
    return createNode(node.op, inputs, node.attributes, node);
  }
}

/** 0, once all of these are known, whatever their values: added to something, it makes that wait for them. */
export function zeroAfter(nodes: readonly Node[]): Node {
  const first = ops.concat(
    nodes.map(node => {
      const corner = node.shape.reduce<Node>((rest, _, axis) => ops.slice(rest, axis, 0, 1), node);
      return ops.reshape(corner, [1]);
    }),
    0,
  );
  // No number is less than itself, and NaN is not either.
  return ops.reduceSum(ops.cast(ops.less(first, first), 'float32'));
}
