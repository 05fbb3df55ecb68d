import type { Complex } from './complex.ts';
import * as c from './complex.ts';
import * as r from './rational.ts';

/** The functions that answers may use, exact where the result is rational and as complex doubles. */
export interface MathFunction {
  readonly arguments: number;
  /** Undefined where the result is not rational, or not computed. */
  exact?(...values: readonly r.Rational[]): r.Rational | undefined;
  approximate(...values: readonly Complex[]): Complex;
}

const ONE = c.real(1);
const PER_DEGREE = c.real(Math.PI / 180);
const tan = (a: Complex) => c.divide(c.sin(a), c.cos(a));
const inverse = (f: (a: Complex) => Complex) => (a: Complex) => c.divide(ONE, f(a));
const unary = (approximate: (a: Complex) => Complex): MathFunction => ({ arguments: 1, approximate });
const onReals = (f: (x: number) => number) => unary(c.onReals(f));

/** The real root of an odd degree, as √[3]{-8} = -2 is meant; else the principal one. */
function root(a: Complex, degree: Complex): Complex {
  const odd = degree.im === 0 && Math.abs(degree.re % 2) === 1;
  if (odd && a.im === 0 && a.re < 0) {
    const value = c.power(c.real(-a.re), c.divide(ONE, degree));
    return { re: -value.re, im: 0, scale: value.scale };
  }
  return c.power(a, c.divide(ONE, degree));
}

const factorialOf = (x: number) => {
  if (!Number.isInteger(x) || x < 0 || x > 170) return Number.NaN;
  let value = 1;
  for (let k = 2; k <= x; k++) value *= k;
  return value;
};

function binomial(n: r.Rational, k: r.Rational): r.Rational | undefined {
  if (n.d !== 1n || k.d !== 1n || k.n < 0n || n.n < k.n) return undefined;
  const parts = [n, k, { n: n.n - k.n, d: 1n }].map(r.factorial);
  const [all, chosen, left] = parts;
  if (!all || !chosen || !left) return undefined;
  return r.rational(all.n, chosen.n * left.n);
}

const magnitude = (a: r.Rational) => (a.n < 0n ? { n: -a.n, d: a.d } : a);
const minus = (a: r.Rational) => ({ n: -a.n, d: a.d });

export const FUNCTIONS: Readonly<Record<string, MathFunction>> = {
  sin: unary(c.sin),
  cos: unary(c.cos),
  tan: unary(tan),
  cot: unary(inverse(tan)),
  sec: unary(inverse(c.cos)),
  csc: unary(inverse(c.sin)),
  arcsin: onReals(Math.asin),
  arccos: onReals(Math.acos),
  arctan: onReals(Math.atan),
  sinh: onReals(Math.sinh),
  cosh: onReals(Math.cosh),
  tanh: onReals(Math.tanh),
  exp: unary(c.exp),
  ln: unary(c.log),
  log: { arguments: 2, approximate: (a, base) => c.divide(c.log(a), c.log(base)) },
  root: {
    arguments: 2,
    exact: (a, degree) => (degree.d === 1n && degree.n === 2n ? r.power(a, { n: 1n, d: 2n }) : undefined),
    approximate: root,
  },
  abs: { arguments: 1, exact: magnitude, approximate: a => ({ re: c.absolute(a), im: 0, scale: a.scale }) },
  floor: { arguments: 1, exact: r.floor, approximate: c.onReals(Math.floor) },
  ceil: { arguments: 1, exact: a => minus(r.floor(minus(a))), approximate: c.onReals(Math.ceil) },
  factorial: { arguments: 1, exact: r.factorial, approximate: c.onReals(factorialOf) },
  binomial: { arguments: 2, exact: binomial, approximate: () => c.NONE },
  degrees: { arguments: 1, approximate: a => c.multiply(a, PER_DEGREE) },
};
