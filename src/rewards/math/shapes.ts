import { children, INFINITY, integer, type Node, negated, some } from './syntax.ts';

/** Other ways to write the same answer, brought to one. */

/** Without what only names it, where the other answer does not name it: x = 5, x ∈ A, 90°. ±a becomes a list. */
export function unwrapped(node: Node, other: Node): Node {
  if (node.kind === 'call' && node.name === 'degrees') return unwrapped(node.items[0]!, other);
  if (node.kind === 'relation') {
    const [name] = node.items;
    const last = node.items.at(-1)!;
    const named = isName(name!) && (node.operators.every(o => o === '=') || node.operators.join() === 'in');
    if (named && !(other.kind === 'relation' && other.operators[0] === node.operators[0]))
      return unwrapped(last, other);
    if (named && other.kind === 'relation' && node.items.length > 2)
      return { ...node, operators: ['='], items: [name!, last] };
    return node;
  }
  if (some(node, ({ kind }) => kind === 'either') && isScalar(node)) {
    return { kind: 'list', items: [withSign(node, 1), withSign(node, -1)] };
  }
  if (node.kind === 'list' || node.kind === 'set') {
    const items = node.items.map(item => (some(item, ({ kind }) => kind === 'either') ? unwrapped(item, node) : item));
    return { ...node, items: items.flatMap(item => (item.kind === 'list' ? item.items : [item])) };
  }
  return node;
}

const isName = (node: Node): boolean =>
  node.kind === 'symbol' ||
  (node.kind === 'tuple' && node.items.every(isName)) ||
  (node.kind === 'product' && node.items.every(item => item.kind === 'symbol' || item.kind === 'constant')) ||
  (node.kind === 'product' && node.items.length === 2 && isName(node.items[0]!) && node.items[1]!.kind === 'tuple');

export const isScalar = (node: Node): boolean =>
  !some(node, ({ kind }) => ['list', 'tuple', 'set', 'union', 'interval', 'matrix', 'relation', 'text'].includes(kind));

function withSign(node: Node, upper: 1 | -1): Node {
  if (node.kind === 'either') {
    const inner = withSign(node.items[0], upper);
    return node.first === upper ? inner : negated(inner);
  }
  if (children(node).length === 0) return node;
  return { ...node, items: children(node).map(child => withSign(child, upper)) } as Node;
}

/** The values that a scalar may stand for: 12% is 0.12, and 12 where the sign is left out. */
export function alternatives(node: Node): Node[] {
  if (node.kind !== 'percent') return [node];
  return [node.items[0], { kind: 'quotient', items: [node.items[0], integer(100)] }];
}

type Interval = Extract<Node, { kind: 'interval' }>;

/** (a, b) may be one, too. */
export function asInterval(node: Node): Interval | undefined {
  if (node.kind === 'interval') return node;
  if (node.kind !== 'tuple' || node.items.length !== 2) return undefined;
  return { kind: 'interval', items: [node.items[0]!, node.items[1]!], open: [true, true] };
}

/**
 * The parts of a set of real numbers: of a union, an interval, conditions on one symbol such as x < 1 or x ≠ 2, and (a, b)
 * where the other answer is not a pair of values. Undefined for what is not written as such a set.
 */
export function asParts(node: Node, other?: Node): readonly Node[] | undefined {
  switch (node.kind) {
    case 'union':
      return node.items.flatMap(item => (item.kind === 'set' ? item.items : (asParts(item) ?? [item])));
    case 'interval':
      return [node];
    case 'tuple':
      return other !== undefined && isRange(other) ? [node] : undefined;
    case 'relation':
      return fromCondition(node);
    case 'list': {
      const parts = node.items.map(item => asParts(item));
      return parts.every(part => part !== undefined) ? parts.flat() : undefined;
    }
    default:
      return undefined;
  }
}
const isRange = ({ kind }: Node) => kind === 'interval' || kind === 'union' || kind === 'relation';

function fromCondition({ items, operators }: Extract<Node, { kind: 'relation' }>): Node[] | undefined {
  const [first, second, third] = items;
  const [operator, next] = operators;
  const interval = (low: Node, high: Node, open: readonly [boolean, boolean]): Node => ({
    kind: 'interval',
    items: [low, high],
    open,
  });
  const strict = operator === '<' || operator === '>';
  const minus = negated(INFINITY);
  if (third === undefined && operator !== undefined) {
    if (first!.kind !== 'symbol') {
      const turned = { '<': '>', '>': '<', '<=': '>=', '>=': '<=', '!=': '!=', '=': undefined, in: undefined } as const;
      const back = turned[operator];
      if (back === undefined || second!.kind !== 'symbol') return undefined;
      return fromCondition({ kind: 'relation', operators: [back], items: [second!, first!] });
    }
    if (some(second!, ({ kind }) => kind === 'symbol')) return undefined;
    if (operator === '!=') {
      const holes = second!.kind === 'list' ? undefined : second!;
      return holes && [interval(minus, holes, [true, true]), interval(holes, INFINITY, [true, true])];
    }
    if (operator === '<' || operator === '<=') return [interval(minus, second!, [true, strict])];
    if (operator === '>' || operator === '>=') return [interval(second!, INFINITY, [strict, true])];
    return undefined;
  }
  if (items.length !== 3 || second!.kind !== 'symbol') return undefined;
  const rising = [operator, next].every(o => o === '<' || o === '<=');
  const falling = [operator, next].every(o => o === '>' || o === '>=');
  if (!rising && !falling) return undefined;
  const open = [strict, next === '<' || next === '>'] as const;
  return rising ? [interval(first!, third!, open)] : [interval(third!, first!, [open[1], open[0]])];
}
