/** n / d with d > 0, in lowest terms. */
export interface Rational {
  readonly n: bigint;
  readonly d: bigint;
}

/** Numbers beyond this are not computed: they make an answer slow to judge, and nobody writes them down. */
const MAX_BITS = 8192;
const MAX_FACTORIAL = 900n;

const magnitude = (a: bigint) => (a < 0n ? -a : a);
const bits = (a: bigint) => a.toString(16).length * 4;

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b];
  return magnitude(a);
}

/** Undefined where d is 0 or the number is too large to go on with. */
export function rational(n: bigint, d: bigint): Rational | undefined {
  if (d === 0n || bits(n) > MAX_BITS || bits(d) > MAX_BITS) return undefined;
  if (d === 1n) return { n, d };
  const divisor = d < 0n ? -greatestCommonDivisor(n, d) : greatestCommonDivisor(n, d);
  return { n: n / divisor, d: d / divisor };
}

export const add = (a: Rational, b: Rational) => rational(a.n * b.d + b.n * a.d, a.d * b.d);
export const multiply = (a: Rational, b: Rational) => rational(a.n * b.n, a.d * b.d);
export const divide = (a: Rational, b: Rational) => rational(a.n * b.d, a.d * b.n);
export const equals = (a: Rational, b: Rational) => a.n === b.n && a.d === b.d;

/** aᵇ where that is rational: an integer b, or a perfect square under b = ½. Undefined otherwise. */
export function power(a: Rational, b: Rational): Rational | undefined {
  if (b.d === 2n) {
    const [n, d] = [squareRoot(a.n), squareRoot(a.d)];
    return n === undefined || d === undefined ? undefined : power({ n, d }, { n: b.n, d: 1n });
  }
  if (b.d !== 1n || (a.n === 0n && b.n <= 0n)) return undefined;
  const times = magnitude(b.n);
  const unit = a.d === 1n && (a.n === 1n || a.n === -1n || a.n === 0n);
  if (!unit && times * BigInt(Math.max(bits(a.n), bits(a.d)) - 3) > MAX_BITS) return undefined;
  const exponent = unit ? 2n - (times % 2n) : times;
  return b.n < 0n ? rational(a.d ** exponent, a.n ** exponent) : { n: a.n ** exponent, d: a.d ** exponent };
}

function squareRoot(a: bigint): bigint | undefined {
  if (a < 0n) return undefined;
  if (a < 2n) return a;
  let root = 1n << BigInt((bits(a) >> 1) + 1);
  for (let next = (root + a / root) >> 1n; next < root; next = (root + a / root) >> 1n) root = next;
  return root * root === a ? root : undefined;
}

/** a!, for whole numbers that are not too large. */
export function factorial(a: Rational): Rational | undefined {
  if (a.d !== 1n || a.n < 0n || a.n > MAX_FACTORIAL) return undefined;
  let result = 1n;
  for (let k = 2n; k <= a.n; k++) result *= k;
  return rational(result, 1n);
}

export function floor({ n, d }: Rational): Rational {
  return { n: n >= 0n ? n / d : -((-n + d - 1n) / d), d: 1n };
}

/** Of digits with at most one point, and the digits that repeat for ever behind it. */
export function fromDecimal(digits: string, repeating = ''): Rational | undefined {
  const [whole = '', fraction = ''] = digits.split('.');
  const scale = 10n ** BigInt(fraction.length);
  const value = rational(BigInt(`${whole}${fraction}` || '0'), scale);
  if (value === undefined || repeating === '') return value;
  const rest = rational(BigInt(repeating), scale * (10n ** BigInt(repeating.length) - 1n));
  return rest && add(value, rest);
}

/** The nearest double; not finite where there is none. */
export function toNumber({ n, d }: Rational): number {
  const [top, bottom] = [Number(n), Number(d)];
  if (Number.isFinite(top) && Number.isFinite(bottom)) return top / bottom;
  const shift = BigInt(Math.max(bits(n), bits(d)) - 1000);
  return Number(n >> shift) / Number(d >> shift);
}
