import { type Node, scalar } from './graph.ts';
import * as ops from './ops.ts';
import { primitives } from './primitives/table.ts';
import { showShape } from './shape.ts';

/** The nodes that `outputs` depend on, themselves included, in creation order (inputs before users). */
export function ancestors(outputs: readonly Node[]): Node[] {
  const seen = new Set<Node>();
  const open = [...outputs];
  for (let node = open.pop(); node; node = open.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    open.push(...node.inputs);
  }
  return [...seen].sort((a, b) => a.id - b.id);
}

/**
 * Reverse mode: the gradient of a float32 scalar with respect to each node of `wrt`, as new nodes of the same shapes.
 * A node that the loss does not depend on, or only through steps that have no derivative, gets zeros.
 */
export function gradients(loss: Node, wrt: readonly Node[]): Node[] {
  if (loss.dtype !== 'float32' || loss.shape.length > 0) {
    throw new RangeError(`gradients: the loss must be a float32 scalar, got ${loss.dtype} ${showShape(loss.shape)}`);
  }
  for (const node of wrt) {
    if (node.dtype !== 'float32') throw new TypeError(`gradients: ${node.op} of type ${node.dtype} has no gradient`);
  }
  const nodes = ancestors([loss]);
  const targets = new Set(wrt);
  const wanted = new Set<Node>();
  for (const node of nodes) {
    const flows = primitives[node.op].derivative !== 'none' && node.inputs.some(each => wanted.has(each));
    if (targets.has(node) || flows) wanted.add(node);
  }

  const found = new Map<Node, Node>([[loss, scalar(1)]]);
  for (const node of nodes.reverse()) {
    const gradient = found.get(node);
    const { derivative } = primitives[node.op];
    if (!gradient || derivative === 'none' || !wanted.has(node)) continue;
    for (const [i, contribution] of derivative(node, gradient, ops).entries()) {
      const to = node.inputs[i]!;
      if (!contribution || !wanted.has(to)) continue;
      const sofar = found.get(to);
      found.set(to, sofar ? ops.add(sofar, contribution) : contribution);
    }
  }
  return wrt.map(node => found.get(node) ?? ops.full(0, node.shape));
}
