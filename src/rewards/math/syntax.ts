import type { Rational } from './rational.ts';

/** What an answer says, as a tree. Scalars come first; what stands for several values or a condition is an answer only. */
export type Node =
  /** @param decimal written with a decimal point, thus perhaps rounded */
  | { readonly kind: 'number'; readonly value: Rational; readonly decimal: boolean }
  | { readonly kind: 'symbol'; readonly name: string }
  | { readonly kind: 'constant'; readonly name: Constant }
  | { readonly kind: 'sum'; readonly items: readonly Node[] }
  | { readonly kind: 'product'; readonly items: readonly Node[] }
  | { readonly kind: 'quotient'; readonly items: readonly [over: Node, under: Node] }
  | { readonly kind: 'power'; readonly items: readonly [base: Node, exponent: Node] }
  | { readonly kind: 'call'; readonly name: string; readonly items: readonly Node[] }
  | { readonly kind: 'percent'; readonly items: readonly [Node] }
  /** ±a, or ∓a */
  | { readonly kind: 'either'; readonly items: readonly [Node]; readonly first: 1 | -1 }
  /** `list` is what stands side by side without brackets. */
  | { readonly kind: 'list' | 'tuple' | 'set' | 'union'; readonly items: readonly Node[] }
  | {
      readonly kind: 'interval';
      readonly items: readonly [low: Node, high: Node];
      readonly open: readonly [low: boolean, high: boolean];
    }
  | { readonly kind: 'matrix'; readonly columns: number; readonly items: readonly Node[] }
  /** items[0] operators[0] items[1] operators[1] … */
  | { readonly kind: 'relation'; readonly operators: readonly Relation[]; readonly items: readonly Node[] }
  | { readonly kind: 'text'; readonly text: string };

export type Constant = 'pi' | 'e' | 'i' | 'infinity';
export type Relation = '=' | '!=' | '<' | '>' | '<=' | '>=' | 'in';

export const integer = (n: number | bigint): Node => ({
  kind: 'number',
  value: { n: BigInt(n), d: 1n },
  decimal: false,
});
export const INFINITY: Node = { kind: 'constant', name: 'infinity' };

/** −a, as a number where a is one. */
export function negated(node: Node): Node {
  if (node.kind === 'number') return { ...node, value: { n: -node.value.n, d: node.value.d } };
  return { kind: 'product', items: [integer(-1), node] };
}

export const children = (node: Node): readonly Node[] => ('items' in node ? node.items : []);

export const REAL_LINE: Node = { kind: 'interval', items: [negated(INFINITY), INFINITY], open: [true, true] };

/** Whether the node, or one inside it, is what `test` looks for. */
export function some(node: Node, test: (node: Node) => boolean): boolean {
  return test(node) || children(node).some(child => some(child, test));
}

/** Equal for trees that are built alike, and only for those. */
export function structure(node: Node): string {
  return JSON.stringify(node, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
}
