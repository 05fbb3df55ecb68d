/**
 * Shapes with symbolic dimensions. A dimension is a number, or a polynomial of symbols with integer coefficients in
 * one canonical spelling: `N`, `4*B*T`, `L+1`. The coefficient comes first, symbols of a term are sorted, terms are
 * sorted by degree and then by name, so equal dimensions are equal strings.
 */
export type Dim = number | string;
export type Shape = readonly Dim[];
/** Values of the symbols, given when a model runs. */
export type Bindings = Readonly<Record<string, number>>;

/** Monomial (sorted symbols joined by '*', '' for the constant) → coefficient, never 0. */
type Polynomial = ReadonlyMap<string, number>;

const parsed = new Map<string, Polynomial>();

function polynomial(dim: Dim): Polynomial {
  if (typeof dim === 'number') {
    if (!Number.isSafeInteger(dim)) throw new RangeError(`dimension ${dim} is not an integer`);
    return dim === 0 ? new Map() : new Map([['', dim]]);
  }
  const known = parsed.get(dim);
  if (known) return known;
  const terms = parse(dim);
  parsed.set(dim, terms);
  return terms;
}

function parse(text: string): Polynomial {
  if (!/^-?[A-Za-z0-9_*]+([+-][A-Za-z0-9_*]+)*$/.test(text)) throw malformed(text);
  const terms = new Map<string, number>();
  for (const [, sign, body] of text.matchAll(/([+-]?)([^+-]+)/g)) {
    let coefficient = sign === '-' ? -1 : 1;
    const symbols: string[] = [];
    for (const factor of body!.split('*')) {
      if (/^\d+$/.test(factor)) coefficient *= Number(factor);
      else if (/^[A-Za-z_]\w*$/.test(factor)) symbols.push(factor);
      else throw malformed(text);
    }
    accumulate(terms, symbols.sort().join('*'), coefficient);
  }
  return terms;
}

function malformed(text: string): RangeError {
  return new RangeError(`"${text}" is not a dimension: write a number, a symbol such as N, or e.g. 4*B*T or L+1`);
}

function accumulate(terms: Map<string, number>, monomial: string, coefficient: number): void {
  const sum = (terms.get(monomial) ?? 0) + coefficient;
  if (sum === 0) terms.delete(monomial);
  else terms.set(monomial, sum);
}

const factors = (monomial: string) => (monomial === '' ? [] : monomial.split('*'));

function format(terms: Polynomial): Dim {
  const order = [...terms].sort(([a], [b]) => factors(b).length - factors(a).length || (a < b ? -1 : Number(a > b)));
  if (order.length === 0) return 0;
  if (order.length === 1 && order[0]![0] === '') return order[0]![1];
  return order
    .map(([monomial, coefficient], i) => {
      const size = Math.abs(coefficient);
      const body = monomial === '' ? `${size}` : size === 1 ? monomial : `${size}*${monomial}`;
      return `${coefficient < 0 ? '-' : i === 0 ? '' : '+'}${body}`;
    })
    .join('');
}

/** The canonical spelling: 'T*B' → 'B*T'. */
export function canonical(shape: Shape): Shape {
  return shape.map(dim => format(polynomial(dim)));
}

export function addDims(...dims: readonly Dim[]): Dim {
  const sum = new Map<string, number>();
  for (const dim of dims) for (const [monomial, c] of polynomial(dim)) accumulate(sum, monomial, c);
  return format(sum);
}

export function subDims(a: Dim, b: Dim): Dim {
  return addDims(a, mulDims(-1, b));
}

export function mulDims(...dims: readonly Dim[]): Dim {
  let product: Polynomial = new Map([['', 1]]);
  for (const dim of dims) {
    const next = new Map<string, number>();
    for (const [a, ca] of product) {
      for (const [b, cb] of polynomial(dim)) {
        accumulate(next, [...factors(a), ...factors(b)].sort().join('*'), ca * cb);
      }
    }
    product = next;
  }
  return format(product);
}

/** Exact quotient; `by` has a single term. Throws where it does not divide. */
export function divDim(dim: Dim, by: Dim): Dim {
  const [divisor, ...rest] = polynomial(by);
  if (!divisor || rest.length > 0) throw new RangeError(`cannot divide dimension ${dim} by ${by}`);
  const quotient = new Map<string, number>();
  for (const [monomial, c] of polynomial(dim)) {
    const left = factors(monomial);
    for (const symbol of factors(divisor[0])) {
      const at = left.indexOf(symbol);
      if (at < 0) throw new RangeError(`dimension ${dim} is not divisible by ${by}`);
      left.splice(at, 1);
    }
    if (c % divisor[1] !== 0) throw new RangeError(`dimension ${dim} is not divisible by ${by}`);
    quotient.set(left.join('*'), c / divisor[1]);
  }
  return format(quotient);
}

/** Number of elements; 1 for a scalar. */
export function sizeOf(shape: Shape): Dim {
  return mulDims(...shape);
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i]);
}

export function showShape(shape: Shape): string {
  return `[${shape.join(',')}]`;
}

/** NumPy broadcasting; a symbolic dimension broadcasts only against an equal one or 1. */
export function broadcastShapes(op: string, ...shapes: readonly Shape[]): Shape {
  const rank = Math.max(...shapes.map(shape => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    let result: Dim = 1;
    for (const shape of shapes) {
      const dim = shape[axis - rank + shape.length] ?? 1;
      if (result === 1) result = dim;
      else if (dim !== 1 && dim !== result) {
        throw new RangeError(`${op}: shapes do not broadcast: ${shapes.map(showShape).join(' with ')}`);
      }
    }
    return result;
  });
}

/** The number a dimension stands for. Throws where a symbol is unbound or the result is negative. */
export function evalDim(dim: Dim, bindings: Bindings): number {
  if (typeof dim === 'number') return dim;
  const bound = bindings[dim];
  if (bound !== undefined && bound >= 0) return bound;
  let sum = 0;
  for (const [monomial, coefficient] of polynomial(dim)) {
    let term = coefficient;
    for (const symbol of factors(monomial)) {
      const value = bindings[symbol];
      if (value === undefined) {
        throw new RangeError(`symbol ${symbol} has no value (bound: ${Object.keys(bindings).join(', ') || 'none'})`);
      }
      term *= value;
    }
    sum += term;
  }
  if (sum < 0) throw new RangeError(`dimension ${dim} is negative (${sum}) with ${JSON.stringify(bindings)}`);
  return sum;
}

/** Resolves a negative axis and checks its range. */
export function axisOf(op: string, axis: number, shape: Shape): number {
  const resolved = axis < 0 ? axis + shape.length : axis;
  if (!Number.isInteger(axis) || resolved < 0 || resolved >= shape.length) {
    throw new RangeError(`${op}: axis ${axis} is outside ${showShape(shape)}`);
  }
  return resolved;
}
