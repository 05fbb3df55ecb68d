/** Arithmetic as written in calculator calls and GSM8K annotations: decimals, + - * /, parentheses, unary minus. */

const LONGEST = 64;
const TOKEN = /\s*(\d+\.?\d*|\.\d+|[-+*/()])/y;

/**
 * The value of an expression, by the usual precedence.
 * @throws Error on anything that is not arithmetic, on division by zero, and beyond 64 characters
 */
export function evaluate(expression: string): number {
  if (expression.length > LONGEST)
    throw new Error(`an expression of ${expression.length} characters; at most ${LONGEST}`);
  const tokens = tokenize(expression);
  let at = 0;
  const next = (...wanted: string[]) => (wanted.includes(tokens[at]!) ? tokens[at++] : undefined);

  const sum = (): number => {
    let value = product();
    for (let sign = next('+', '-'); sign !== undefined; sign = next('+', '-')) {
      value = sign === '+' ? value + product() : value - product();
    }
    return value;
  };
  const product = (): number => {
    let value = factor();
    for (let sign = next('*', '/'); sign !== undefined; sign = next('*', '/')) {
      const right = factor();
      if (sign === '/' && right === 0) throw new Error(`division by zero in ${JSON.stringify(expression)}`);
      value = sign === '*' ? value * right : value / right;
    }
    return value;
  };
  const factor = (): number => {
    if (next('-')) return -factor();
    if (next('(')) {
      const value = sum();
      if (!next(')')) throw unexpected();
      return value;
    }
    if (!/^[\d.]/.test(tokens[at] ?? '')) throw unexpected();
    return Number(tokens[at++]);
  };
  const unexpected = () => {
    const found = tokens[at] === undefined ? 'its end' : JSON.stringify(tokens[at]);
    return new Error(`${JSON.stringify(expression)} is not arithmetic: unexpected ${found}`);
  };

  const value = sum();
  if (at < tokens.length) throw unexpected();
  return value;
}

/**
 * A number as GSM8K writes results: `24`, `0.5`; at most `decimals` decimals, no trailing zeros, no exponent.
 * @throws Error when the number is not finite or has more than 12 digits before the point
 */
export function formatNumber(value: number, decimals = 6): string {
  if (!(Math.abs(value) < 1e12)) throw new Error(`${value} is too large for the calculator`);
  const text = value.toFixed(decimals);
  const short = text.includes('.') ? text.replace(/\.?0+$/, '') : text;
  return short === '-0' ? '0' : short;
}

function tokenize(expression: string): string[] {
  const tokens: string[] = [];
  const end = expression.trimEnd().length;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < end) {
    const position = TOKEN.lastIndex;
    const match = TOKEN.exec(expression);
    if (match === null) {
      throw new Error(
        `${JSON.stringify(expression)} is not arithmetic: unexpected ${JSON.stringify(expression[position])}`,
      );
    }
    tokens.push(match[1]!);
  }
  return tokens;
}
