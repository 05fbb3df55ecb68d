/**
 * A complex double. `scale` is the size of what it was computed from: where a sum cancels, the rounding error is that
 * of the scale, not of the value.
 */
export interface Complex {
  readonly re: number;
  readonly im: number;
  readonly scale: number;
}

export const real = (re: number): Complex => ({ re, im: 0, scale: Math.abs(re) });
export const I: Complex = { re: 0, im: 1, scale: 1 };
export const NONE: Complex = { re: Number.NaN, im: Number.NaN, scale: Number.NaN };

export const absolute = ({ re, im }: Complex) => Math.hypot(re, im);
export const isFiniteNumber = ({ re, im }: Complex) => Number.isFinite(re) && Number.isFinite(im);

/** How much larger than itself a number's rounding error is to be taken. */
function condition(a: Complex): number {
  const size = absolute(a);
  return size === 0 ? 1 : Math.max(1, a.scale / size);
}
const scaled = (re: number, im: number, conditioned: number): Complex => ({
  re,
  im,
  scale: Math.hypot(re, im) * conditioned,
});

export function add(a: Complex, b: Complex): Complex {
  const re = a.re + b.re;
  const im = a.im + b.im;
  return { re, im, scale: Math.max(a.scale, b.scale, Math.hypot(re, im)) };
}

export function multiply(a: Complex, b: Complex): Complex {
  const re = a.re * b.re - a.im * b.im;
  return { re, im: a.re * b.im + a.im * b.re, scale: a.scale * b.scale };
}

export function divide(a: Complex, b: Complex): Complex {
  const size = b.re * b.re + b.im * b.im;
  if (size === 0) return NONE;
  const re = (a.re * b.re + a.im * b.im) / size;
  return scaled(re, (a.im * b.re - a.re * b.im) / size, condition(a) * condition(b));
}

export function exp(a: Complex): Complex {
  const size = Math.exp(a.re);
  return scaled(size * Math.cos(a.im), size * Math.sin(a.im), Math.max(1, a.scale));
}

/** Principal branch. */
export function log(a: Complex): Complex {
  const size = absolute(a);
  if (size === 0) return NONE;
  const re = Math.log(size);
  const im = Math.atan2(a.im, a.re);
  return { re, im, scale: Math.max(condition(a), Math.hypot(re, im)) };
}

/** Principal branch; integer powers of real numbers are real. */
export function power(a: Complex, b: Complex): Complex {
  const conditioned = condition(a) * condition(b) * Math.max(1, Math.min(1e3, absolute(b)));
  if (a.im === 0 && b.im === 0 && (a.re >= 0 || Number.isInteger(b.re))) {
    if (a.re === 0 && b.re <= 0) return NONE;
    return scaled(a.re ** b.re, 0, conditioned);
  }
  if (absolute(a) === 0) return b.re > 0 ? real(0) : NONE;
  const { re, im } = exp(multiply(b, log(a)));
  return scaled(re, im, conditioned);
}

export function sin(a: Complex): Complex {
  return scaled(Math.sin(a.re) * Math.cosh(a.im), Math.cos(a.re) * Math.sinh(a.im), Math.max(1, a.scale));
}

export function cos(a: Complex): Complex {
  return scaled(Math.cos(a.re) * Math.cosh(a.im), -Math.sin(a.re) * Math.sinh(a.im), Math.max(1, a.scale));
}

/** Of a function that is known on real numbers only. */
export function onReals(f: (x: number) => number): (a: Complex) => Complex {
  return a => {
    if (a.im !== 0) return NONE;
    const value = f(a.re);
    return Number.isFinite(value) ? { re: value, im: 0, scale: Math.max(a.scale, Math.abs(value)) } : NONE;
  };
}
