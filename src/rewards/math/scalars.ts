import { absolute, add, type Complex, divide, isFiniteNumber, multiply, real } from './complex.ts';
import { approximate, exact } from './evaluate.ts';
import { type Rational, toNumber } from './rational.ts';
import { children, type Node, some, structure } from './syntax.ts';

/** Values at which expressions in symbols are compared; whole numbers where that can be exact. */
const POINTS = 4;
/** What double arithmetic may differ by, relative to the values and to what they were computed from. */
const RELATIVE_ERROR = 1e-9;
const ROUNDING_ERROR = 1e-12;

/** Which answers count as the same. */
export interface EqualityOptions {
  /**
   * A number written with a decimal point stands for what it was rounded from: it equals what differs by no more than
   * 1 in this decimal place, and in the significant place before it. Default 6.
   */
  readonly precision: number;
}

/** Well spread, the same in every run: the fractional parts of multiples of irrational numbers. */
function spread(symbol: number, point: number): number {
  return ((symbol + 1) * Math.SQRT2 + (point + 1) * ((1 + Math.sqrt(5)) / 2) * (symbol + 2)) % 1;
}
function wholeNumbers(symbols: readonly string[], point: number): Map<string, Rational> {
  const value = (index: number) => BigInt(Math.floor(spread(index, point) * 1e6) + 1009) * (point % 2 === 0 ? 1n : -1n);
  return new Map(symbols.map((name, index) => [name, { n: value(index), d: 1n }]));
}
/** Positive at the first two points, of either sign at the others. */
function realNumbers(symbols: readonly string[], point: number): Map<string, number> {
  const sign = (index: number) => (point < 2 || (index + point) % 2 === 0 ? 1 : -1);
  return new Map(symbols.map((name, index) => [name, sign(index) * (0.3 + 2 * spread(index, point))]));
}

function symbolsOf(node: Node, into: Set<string>): Set<string> {
  if (node.kind === 'symbol') into.add(node.name);
  for (const child of children(node)) symbolsOf(child, into);
  return into;
}
const symbolsOfBoth = (a: Node, b: Node) => [...symbolsOf(b, symbolsOf(a, new Set()))].sort();
const isDecimal = (node: Node) => some(node, each => each.kind === 'number' && each.decimal && each.value.d !== 1n);

/**
 * Whether two scalars are the same number, or the same function of their symbols: exactly, where their values are
 * rational; else to double precision, at four points of the real numbers with principal branches. Scalars that cannot
 * be computed are the same when they are built alike.
 */
export function equalScalars(a: Node, b: Node, options: EqualityOptions): boolean {
  const symbols = symbolsOfBoth(a, b);
  const rounded = isDecimal(a) || isDecimal(b);
  const points = symbols.length === 0 ? 1 : POINTS;
  let computed = 0;
  let same = 0;
  for (let point = 0; point < points; point++) {
    const at = wholeNumbers(symbols, point);
    const [left, right] = [exact(a, at), exact(b, at)];
    if (left === undefined || right === undefined) continue;
    computed++;
    if (left.n === right.n && left.d === right.d) same++;
  }
  if (computed === points && (same === points || !rounded)) return same === points;

  const tolerance = rounded ? options.precision : undefined;
  let compared = 0;
  for (let point = 0; point < points; point++) {
    const at = realNumbers(symbols, point);
    const [left, right] = [approximate(a, at), approximate(b, at)];
    if (!isFiniteNumber(left) && !isFiniteNumber(right)) continue;
    if (!equalNumbers(left, right, tolerance)) return false;
    compared++;
  }
  return compared > 0 ? compared * 2 >= points : structure(a) === structure(b);
}

/** @param precision decimal places that count, where one of the numbers may have been rounded */
function equalNumbers(a: Complex, b: Complex, precision: number | undefined): boolean {
  if (!isFiniteNumber(a) || !isFiniteNumber(b)) return false;
  const difference = absolute(add(a, multiply(b, real(-1))));
  const size = Math.max(absolute(a), absolute(b));
  if (difference <= RELATIVE_ERROR * size || difference <= ROUNDING_ERROR * Math.max(a.scale, b.scale)) {
    return precision === undefined || difference <= 10 ** -precision || difference <= ROUNDING_ERROR * size;
  }
  return precision !== undefined && difference <= 10 ** -precision && difference <= 10 ** (1 - precision) * size;
}

/**
 * The constant k with a = k b for all values of the symbols; undefined where there is none, or where it cannot be told.
 * Not 0.
 */
export function ratio(a: Node, b: Node, options: EqualityOptions): number | undefined {
  const symbols = symbolsOfBoth(a, b);
  for (let point = 0; point < POINTS; point++) {
    const at = wholeNumbers(symbols, point);
    const [left, right] = [exact(a, at), exact(b, at)];
    const known = left !== undefined && right !== undefined && left.n !== 0n && right.n !== 0n;
    if (known) {
      const value = {
        n: left.n * right.d * (right.n < 0n ? -1n : 1n),
        d: left.d * (right.n < 0n ? -right.n : right.n),
      };
      const factor: Node = { kind: 'number', value, decimal: isDecimal(a) || isDecimal(b) };
      return equalScalars(a, { kind: 'product', items: [factor, b] }, options) ? toNumber(value) : undefined;
    }
  }
  if (equalScalars(a, b, options)) return 1;
  let factor: number | undefined;
  for (let point = 0; point < POINTS; point++) {
    const at = realNumbers(symbols, point);
    const { re, im } = divide(approximate(a, at), approximate(b, at));
    const first = factor ?? re;
    // Not a number, not real, or another one than before.
    if (!(Math.abs(im) <= RELATIVE_ERROR * Math.abs(re) && Math.abs(re - first) <= RELATIVE_ERROR * Math.abs(first)))
      return undefined;
    factor = re;
  }
  return factor === 0 ? undefined : factor;
}
