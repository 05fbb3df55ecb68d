import type { Complex } from './complex.ts';
import * as c from './complex.ts';
import { FUNCTIONS } from './functions.ts';
import * as r from './rational.ts';
import type { Node } from './syntax.ts';

const HUNDRED: r.Rational = { n: 100n, d: 1n };
const CONSTANTS = { pi: c.real(Math.PI), e: c.real(Math.E), i: c.I, infinity: c.NONE };

/**
 * The rational value of a scalar where the symbols have the values given. Undefined where it has none, where it is too
 * large to be computed, and for what is not a scalar.
 */
export function exact(node: Node, at: ReadonlyMap<string, r.Rational>): r.Rational | undefined {
  if (node.kind === 'number') return node.value;
  if (node.kind === 'symbol') return at.get(node.name);
  const combine = COMBINE_EXACT[node.kind];
  if (combine === undefined && node.kind !== 'call') return undefined;
  const values: r.Rational[] = [];
  for (const item of 'items' in node ? node.items : []) {
    const value = exact(item, at);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return node.kind === 'call' ? FUNCTIONS[node.name]?.exact?.(...values) : combine!(values);
}

type Combine<T> = (values: readonly T[]) => T | undefined;
function folded(combine: (a: r.Rational, b: r.Rational) => r.Rational | undefined): Combine<r.Rational> {
  return ([first, ...rest]) =>
    rest.reduce<r.Rational | undefined>((total, each) => total && combine(total, each), first);
}
const COMBINE_EXACT: Partial<Record<Node['kind'], Combine<r.Rational>>> = {
  sum: folded(r.add),
  product: folded(r.multiply),
  quotient: folded(r.divide),
  power: folded(r.power),
  percent: ([value]) => r.divide(value!, HUNDRED),
};

/** The value as complex doubles on principal branches; not finite where there is none, or for what is not a scalar. */
export function approximate(node: Node, at: ReadonlyMap<string, number>): Complex {
  switch (node.kind) {
    case 'number':
      return c.real(r.toNumber(node.value));
    case 'symbol':
      return c.real(at.get(node.name) ?? Number.NaN);
    case 'constant':
      return CONSTANTS[node.name];
    case 'sum':
    case 'product':
    case 'quotient':
    case 'power':
      return node.items.map(item => approximate(item, at)).reduce(COMBINE_APPROXIMATE[node.kind]);
    case 'percent':
      return c.divide(approximate(node.items[0], at), c.real(100));
    case 'call':
      return FUNCTIONS[node.name]?.approximate(...node.items.map(item => approximate(item, at))) ?? c.NONE;
    default:
      return c.NONE;
  }
}
const COMBINE_APPROXIMATE = { sum: c.add, product: c.multiply, quotient: c.divide, power: c.power };
