import type { Answer } from './parse-answer.ts';
import { type EqualityOptions, equalScalars, ratio } from './scalars.ts';
import { alternatives, asInterval, asParts, unwrapped } from './shapes.ts';
import { type Node, negated, type Relation, structure } from './syntax.ts';

/**
 * Whether two answers say the same. Symmetric.
 *
 * Numbers and expressions: `equalScalars`. 12% equals 0.12 and 12, which is how labels leave out the sign. x = a equals a
 * where x is a symbol; ±a lists both. Sets and lists are compared in any order, tuples, and lists with tuples, in theirs;
 * a set of one value equals the value. Intervals and unions are compared with the conditions on one symbol that say the
 * same, (a, b) as the open interval where the other is one. Equations equal their multiples. Words are compared without
 * regard to case.
 */
export function equivalent(a: Answer, b: Answer, options: EqualityOptions = { precision: 6 }): boolean {
  return a.text === b.text || equalNodes(a.node, b.node, options);
}

function equalNodes(left: Node, right: Node, options: EqualityOptions): boolean {
  const [a, b] = [unwrapped(left, right), unwrapped(right, left)];
  const equal = (x: Node, y: Node) => equalNodes(x, y, options);
  if (a.kind === 'text' || b.kind === 'text') return a.kind === b.kind && structure(a) === structure(b);
  if (a.kind === 'relation' && b.kind === 'relation' && equalRelations(a, b, options)) return true;

  const [ofA, ofB] = [asParts(a, b), asParts(b, a)];
  if (ofA !== undefined && ofB !== undefined) return sameInAnyOrder(ofA, ofB, equalParts(equal));

  if (isCollection(a) && isCollection(b)) {
    const ordered = a.kind === 'tuple' || b.kind === 'tuple';
    if (!ordered) return sameInAnyOrder(a.items, b.items, equal);
    if (a.kind === 'set' || b.kind === 'set' || a.items.length !== b.items.length) return false;
    return a.items.every((item, i) => equal(item, b.items[i]!));
  }
  if (isCollection(a) || isCollection(b)) {
    const [collection, single] = isCollection(a) ? [a, b] : [b as Collection, a];
    return collection.kind === 'set' && collection.items.length === 1 && equal(collection.items[0]!, single);
  }
  if (a.kind === 'matrix' || b.kind === 'matrix') {
    if (a.kind !== 'matrix' || b.kind !== 'matrix' || a.columns !== b.columns) return false;
    return a.items.length === b.items.length && a.items.every((item, i) => equal(item, b.items[i]!));
  }
  if (a.kind === 'relation' || b.kind === 'relation') return false;
  if (a.kind === 'percent' && b.kind === 'percent') return equalScalars(a.items[0], b.items[0], options);
  return alternatives(a).some(x => alternatives(b).some(y => equalScalars(x, y, options)));
}

type Collection = Extract<Node, { kind: 'list' | 'tuple' | 'set' | 'union' }>;
const isCollection = (node: Node): node is Collection =>
  node.kind === 'list' || node.kind === 'tuple' || node.kind === 'set';

type Equal = (a: Node, b: Node) => boolean;

/** Without regard to order and to what occurs more than once. */
function sameInAnyOrder(a: readonly Node[], b: readonly Node[], equal: Equal): boolean {
  const within = (some: readonly Node[], others: readonly Node[]) =>
    some.every(item => others.some(other => equal(item, other)));
  return within(a, b) && within(b, a);
}

/** Parts of a set of real numbers, where (a, b) is an interval. */
const equalParts =
  (equal: Equal): Equal =>
  (a, b) => {
    const [x, y] = [asInterval(a), asInterval(b)];
    if (x === undefined || y === undefined) return x === y && equal(a, b);
    const open = x.open[0] === y.open[0] && x.open[1] === y.open[1];
    return open && equal(x.items[0], y.items[0]) && equal(x.items[1], y.items[1]);
  };

type Relations = Extract<Node, { kind: 'relation' }>;
const TURNED: Readonly<Record<Relation, Relation | undefined>> = {
  '=': '=',
  '!=': '!=',
  '<': '>',
  '>': '<',
  '<=': '>=',
  '>=': '<=',
  in: undefined,
};

/** Whether the difference of the sides is the same up to a factor, with the sign that the direction asks for. */
function equalRelations(a: Relations, b: Relations, options: EqualityOptions): boolean {
  if (a.operators.length !== b.operators.length) return false;
  if (a.operators.length > 1) {
    const forth = a.operators.every((operator, i) => operator === b.operators[i]);
    if (forth && a.items.every((side, i) => equalNodes(side, b.items[i]!, options))) return true;
    const [turned, sides] = [b.operators.map(operator => TURNED[operator]).reverse(), [...b.items].reverse()];
    const back = a.operators.every((operator, i) => operator === turned[i]);
    return back && a.items.every((side, i) => equalNodes(side, sides[i]!, options));
  }
  const [one, other] = [a.operators[0]!, b.operators[0]!];
  if (one === 'in' || other === 'in') {
    return one === other && a.items.every((side, i) => equalNodes(side, b.items[i]!, options));
  }
  if (one !== other && one !== TURNED[other]) return false;
  const factor = ratio(difference(a), difference(b), options);
  if (factor === undefined) return false;
  return one === '=' || one === '!=' || factor > 0 === (one === other);
}
const difference = ({ items }: Relations): Node => ({ kind: 'sum', items: [items[0]!, negated(items[1]!)] });
