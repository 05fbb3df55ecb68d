import { type Dim, type Node, scalar } from './graph.ts';
import * as ops from './ops.ts';
import { primitives } from './primitives/table.ts';
import { Recomputation } from './recompute.ts';
import { addDims, showShape } from './shape.ts';

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

  const found = new Map<Node, Node[]>([[loss, [scalar(1)]]]);
  const totals = new Map<Node, Node>();
  const recomputation = new Recomputation();
  /** Nodes that were given a contribution since the way back last entered a region. */
  const touched = new Set<Node>();
  for (const node of nodes.reverse()) {
    const contributions = found.get(node);
    if (!contributions || !wanted.has(node)) continue;
    const gradient = total(contributions);
    totals.set(node, gradient);
    const { derivative } = primitives[node.op];
    if (derivative === 'none') continue;
    if (recomputation.enters(node)) {
      const settled = [...touched].filter(each => !totals.has(each));
      for (const each of settled) found.set(each, [total(found.get(each)!)]);
      recomputation.enter(node, [gradient, ...settled.map(each => found.get(each)![0]!)]);
      touched.clear();
    }
    for (const [i, contribution] of derivative(recomputation.copyOf(node), gradient, ops).entries()) {
      const to = node.inputs[i]!;
      if (!contribution || !wanted.has(to)) continue;
      found.set(to, [...(found.get(to) ?? []), contribution]);
      touched.add(to);
    }
  }
  return wrt.map(node => totals.get(node) ?? ops.full(0, node.shape));
}

function total(contributions: readonly Node[]): Node {
  let rest = contributions;
  const terms: Node[] = [];
  for (let tiles = findTiles(rest); tiles; tiles = findTiles(rest)) {
    const { axis } = tiles[0]!.attributes;
    terms.push(
      ops.concat(
        tiles.map(tile => tile.inputs[0]!),
        axis as number,
      ),
    );
    rest = rest.filter(each => !tiles.includes(each));
  }
  // Single elements are put into the sum of the others instead of zeros that would be added to it.
  const [single, dense] = [rest.filter(isSingle), rest.filter(each => !isSingle(each))];
  const [first, ...others] = [...dense, ...terms, ...single] as [Node, ...Node[]];
  return others.reduce((sum, each) => {
    const [index, values] = each.inputs;
    return isSingle(each) ? ops.putLast(index!, values!, each.shape.at(-1)!, sum) : ops.add(sum, each);
  }, first);
}

/**
 * Slices that cover a node side by side (query, key and value of one projection) give padded gradients that would be
 * added: such pads, in order along their axis, can be joined instead, which reads and writes far less.
 */
function findTiles(contributions: readonly Node[]): Node[] | undefined {
  for (const first of contributions) {
    const tiles: Node[] = [];
    let position: Dim = 0;
    let next: Node | undefined = first;
    while (next?.op === 'pad' && boundsOf(next)[0] === position) {
      const { axis } = next.attributes as { axis: number };
      tiles.push(next);
      if (boundsOf(next)[1] === 0) return tiles;
      const end: Dim = addDims(position, next.inputs[0]!.shape[axis]!);
      position = end;
      next = contributions.find(
        each => each.op === 'pad' && each.attributes.axis === axis && boundsOf(each)[0] === end,
      );
    }
  }
  return undefined;
}

const isSingle = ({ op, inputs }: Node) => op === 'putLast' && inputs.length === 2;
const boundsOf = (pad: Node) => pad.attributes.bounds as readonly [Dim, Dim];
