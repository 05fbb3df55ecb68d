import { FUNCTIONS } from './functions.ts';
import { fromDecimal } from './rational.ts';
import { integer, type Node, negated, REAL_LINE } from './syntax.ts';
import { ParseError, type Token, tokenize } from './tokens.ts';
import { DEGREES, isUnit, PERCENT, SCALES } from './units.ts';

/** Brackets inside brackets; deeper answers are not read. */
export const MAX_DEPTH = 60;

const GREEK = new Set(
  (
    'alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon phi ' +
    'varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell'
  ).split(' '),
);
const TIMES = new Set(['*', 'cdot', 'times']);
const OVER = new Set(['/', 'div']);

/**
 * Reads scalars by precedence: sums, products (also without a sign), powers, what has brackets. Brackets that hold
 * several values are left to `AnswerParser`.
 */
export class ExpressionParser {
  readonly tokens: Token[];
  protected at = 0;
  #depth = 0;
  #bars = 0;

  constructor(text: string) {
    this.tokens = tokenize(text);
  }

  protected get next(): Token | undefined {
    return this.tokens[this.at];
  }
  protected is(...values: string[]): boolean {
    const { next } = this;
    return next !== undefined && (next.type === 'mark' || next.type === 'command') && values.includes(next.value);
  }
  protected accept(...values: string[]): boolean {
    if (!this.is(...values)) return false;
    this.at++;
    return true;
  }
  protected expect(value: string): void {
    if (!this.accept(value)) throw new ParseError(`no ${value} where one is due`);
  }
  protected nested<T>(read: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new ParseError(`nested more than ${MAX_DEPTH} deep`);
    const result = read();
    this.#depth--;
    return result;
  }

  protected sum(): Node {
    const items: Node[] = [];
    let sign: Node | undefined;
    do {
      sign = undefined;
      let negative = false;
      for (;;) {
        if (this.accept('-')) negative = !negative;
        else if (this.is('pm', 'mp')) sign = { kind: 'either', items: [integer(1)], first: this.accept('pm') ? 1 : -1 };
        else if (sign?.kind === 'either' && this.accept('mp')) continue;
        else if (!this.accept('+')) break;
        if (sign !== undefined && this.is('mp')) throw new ParseError('two signs');
      }
      let term = this.#product();
      if (negative) term = negated(term);
      items.push(sign?.kind === 'either' ? { ...sign, items: [term] } : term);
    } while (this.is('+', '-', 'pm', 'mp'));
    return items.length === 1 ? items[0]! : { kind: 'sum', items };
  }

  /** Quotients and products from left to right; symbols side by side are multiplied. */
  #product(): Node {
    let factors: Node[] = [this.#mixedNumber() ?? this.#power()];
    const product = () => (factors.length === 1 ? factors[0]! : ({ kind: 'product', items: factors } as const));
    for (;;) {
      const { next } = this;
      if (next === undefined) break;
      if (next.type === 'mark' || next.type === 'command') {
        if (TIMES.has(next.value)) {
          this.at++;
          factors.push(this.#signedPower());
          continue;
        }
        if (OVER.has(next.value)) {
          this.at++;
          factors = [{ kind: 'quotient', items: [product(), this.#signedPower()] }];
          continue;
        }
      }
      if (this.accept('%')) {
        factors = [{ kind: 'percent', items: [product()] }];
        continue;
      }
      if (this.#isUnit(next, factors)) return this.#withUnit(product());
      if (!this.#startsFactor(next)) break;
      if (next.type === 'number' && this.tokens[this.at - 1]!.type === 'number') {
        throw new ParseError('a number behind another one');
      }
      factors.push(this.#power());
    }
    return product();
  }

  #signedPower(): Node {
    if (this.accept('-')) return negated(this.#power());
    this.accept('+');
    return this.#power();
  }

  #isUnit(token: Token, factors: readonly Node[]): boolean {
    if (token.type === 'text') return true;
    if (token.type !== 'word') return false;
    const numeric = factors.every(({ kind }) => kind !== 'symbol');
    return numeric && (isUnit(token.value, token.spaced) || PERCENT.has(token.value) || SCALES.has(token.value));
  }

  /** Skips a unit, which ends a term: what counts is the number before it. */
  #withUnit(value: Node): Node {
    let result = value;
    for (let words = 0; ; words++) {
      const { next } = this;
      if (next?.type === 'word' || next?.type === 'text' || (words > 0 && next?.type === 'letter')) {
        const word = next.value.toLowerCase();
        const scale = SCALES.get(word);
        if (words > 5 || /[\d=<>]/.test(word)) throw new ParseError('a sentence');
        if (scale !== undefined) result = { kind: 'product', items: [result, integer(scale)] };
        else if (PERCENT.has(word)) result = { kind: 'percent', items: [result] };
        else if (DEGREES.has(word)) result = { kind: 'call', name: 'degrees', items: [result] };
        this.at++;
        if (this.accept('^')) this.#argument();
      } else if (words > 0 && next?.value === '/') this.at++;
      else if (words > 0 && next?.value === '.' && this.tokens[this.at + 1] === undefined) this.at++;
      else break;
    }
    if (this.next !== undefined && this.#startsFactor(this.next)) throw new ParseError('something behind a unit');
    return result;
  }

  #startsFactor({ type, value }: Token): boolean {
    if (type === 'number' || type === 'letter' || type === 'word' || type === 'begin') return true;
    if (type === 'mark') return value === '(' || value === '[' || value === '{' || (value === '|' && this.#bars === 0);
    if (type !== 'command') return false;
    return (
      GREEK.has(value) ||
      Object.hasOwn(FUNCTIONS, value) ||
      ['frac', 'sqrt', 'pi', 'infty', 'binom', 'lfloor', 'lceil', 'imath', 'emptyset', 'R'].includes(value)
    );
  }

  /** 2\frac{3}{4} and 2 3/4: a whole number and a part of one, written without a sign between them, are added. */
  #mixedNumber(): Node | undefined {
    const [whole, second, third, fourth] = this.tokens.slice(this.at, this.at + 4);
    if (whole?.type !== 'number' || whole.value.includes('.')) return undefined;
    if (second?.type === 'command' && second.value === 'frac') {
      this.at++;
      const fraction = this.#power();
      const numbers = fraction.kind === 'quotient' && fraction.items.every(({ kind }) => kind === 'number');
      return { kind: numbers ? 'sum' : 'product', items: [integer(BigInt(whole.value)), fraction] };
    }
    const plain = second?.type === 'number' && second.spaced && third?.value === '/' && fourth?.type === 'number';
    if (!plain) return undefined;
    this.at++;
    const over = this.#number();
    this.expect('/');
    return { kind: 'sum', items: [integer(BigInt(whole.value)), { kind: 'quotient', items: [over, this.#number()] }] };
  }

  /** A factor with what hangs on it: exponents, !, °. */
  #power(): Node {
    let value = this.#primary();
    for (;;) {
      if (this.accept('^')) value = this.#raised(value);
      else if (this.accept('!')) value = { kind: 'call', name: 'factorial', items: [value] };
      else if (this.accept('circ')) value = { kind: 'call', name: 'degrees', items: [value] };
      else return value;
    }
  }

  #raised(base: Node): Node {
    const exponent = this.nested(() => {
      if (this.is('{')) {
        const after = this.tokens[this.at + 1];
        if (after?.value !== 'circ') return this.#group();
        this.at += 2;
        this.expect('}');
        return undefined;
      }
      if (this.accept('circ')) return undefined;
      if (this.accept('-')) return negated(this.#raisable());
      return this.#raisable();
    });
    return exponent === undefined
      ? { kind: 'call', name: 'degrees', items: [base] }
      : { kind: 'power', items: [base, exponent] };
  }

  /** An exponent without braces: towers are read from the right. */
  #raisable(): Node {
    const value = this.#primary();
    return this.accept('^') ? this.#raised(value) : value;
  }

  /** {…}, or one digit or symbol without braces, as in \frac12. */
  #argument(): Node {
    if (this.is('{')) return this.#group();
    const { next } = this;
    if (next?.type === 'number' && next.value.length > 1 && /^\d+$/.test(next.value)) {
      this.tokens.splice(this.at, 1, { ...next, value: next.value[0]! }, { ...next, value: next.value.slice(1) });
    }
    return this.nested(() => this.#primary());
  }

  #group(): Node {
    return this.nested(() => {
      this.expect('{');
      const value = this.inBraces();
      this.expect('}');
      return value;
    });
  }
  /** What braces that group may hold. */
  protected inBraces(): Node {
    return this.sum();
  }
  protected bracketed(): Node {
    throw new ParseError('brackets');
  }
  protected environment(_name: string): Node {
    throw new ParseError('an environment');
  }

  #number(): Node {
    const token = this.next!;
    this.at++;
    const digits = token.value;
    if (digits.includes('.') && this.accept('overline')) {
      this.expect('{');
      const repeating = this.next;
      if (repeating?.type !== 'number' || !/^\d+$/.test(repeating.value)) throw new ParseError('\\overline');
      this.at++;
      this.expect('}');
      return this.#literal(digits, repeating.value);
    }
    const [exponent, more] = this.tokens.slice(this.at, this.at + 2);
    // 1.5e3 and 2E-4
    if (exponent?.type === 'letter' && /^[eE]$/.test(exponent.value) && !exponent.spaced && more && !more.spaced) {
      const signed = more.value === '-' || more.value === '+';
      const power = signed ? this.tokens[this.at + 2] : more;
      if (power?.type === 'number' && !power.spaced && /^\d+$/.test(power.value)) {
        this.at += signed ? 3 : 2;
        const size = integer(BigInt(power.value));
        const raised = { kind: 'power', items: [integer(10), more.value === '-' ? negated(size) : size] } as const;
        return { kind: 'product', items: [this.#literal(digits), raised] };
      }
    }
    return this.#literal(digits);
  }
  #literal(digits: string, repeating = ''): Node {
    const value = fromDecimal(digits, repeating);
    if (value === undefined) throw new ParseError('a number of too many digits');
    return { kind: 'number', value, decimal: /\.\d/.test(digits) && repeating === '' };
  }

  #primary(): Node {
    const { next } = this;
    if (next === undefined) throw new ParseError('an end where a value is due');
    if (next.type === 'number') return this.#subscripted(this.#number());
    if (next.type === 'begin') return this.nested(() => this.environment(next.value));
    if (next.type === 'word') return this.#word(next.value);
    if (next.type === 'letter') {
      this.at++;
      if (next.value === 'e' || next.value === 'i') return { kind: 'constant', name: next.value };
      return this.#subscripted({ kind: 'symbol', name: next.value });
    }
    if (this.is('(', '[', '\\{', 'langle')) return this.nested(() => this.bracketed());
    if (this.is('{')) return this.#group();
    if (this.accept('|')) return this.#absolute();
    if (next.type === 'command') return this.#command(next.value);
    throw new ParseError(`${next.value} where a value is due`);
  }

  /** Letters side by side are symbols that are multiplied, as long as they are few; more of them are a word. */
  #word(letters: string): Node {
    if (letters.length > 3) throw new ParseError(`the word ${letters}`);
    const split = [...letters].map(value => ({ type: 'letter', value, spaced: false }) as const);
    this.tokens.splice(this.at, 1, ...split);
    return this.#primary();
  }

  #subscripted(base: Node): Node {
    if (!this.accept('_')) return base;
    const name = base.kind === 'symbol' ? base.name : base.kind === 'number' ? String(base.value.n) : '';
    const tokens: string[] = [];
    if (this.accept('{')) {
      while (this.next !== undefined && !this.is('}')) tokens.push(this.tokens[this.at++]!.value);
      this.expect('}');
    } else if (this.next !== undefined) tokens.push(this.tokens[this.at++]!.value);
    return { kind: 'symbol', name: `${name}_${tokens.join('')}` };
  }

  #absolute(): Node {
    this.#bars++;
    const value = this.nested(() => this.sum());
    this.expect('|');
    this.#bars--;
    return { kind: 'call', name: 'abs', items: [value] };
  }

  #command(name: string): Node {
    this.at++;
    if (GREEK.has(name)) return this.#subscripted({ kind: 'symbol', name });
    if (Object.hasOwn(FUNCTIONS, name)) return this.#call(name);
    switch (name) {
      case 'pi':
        return { kind: 'constant', name: 'pi' };
      case 'infty':
        return { kind: 'constant', name: 'infinity' };
      case 'imath':
        return { kind: 'constant', name: 'i' };
      case 'R':
        return REAL_LINE;
      case 'emptyset':
        return { kind: 'set', items: [] };
      case 'frac':
        return { kind: 'quotient', items: [this.#argument(), this.#argument()] };
      case 'binom':
        return { kind: 'call', name: 'binomial', items: [this.#argument(), this.#argument()] };
      case 'sqrt':
        return this.#root();
      case 'lfloor':
      case 'lceil':
        return this.#rounded(name === 'lfloor' ? 'floor' : 'ceil');
      default:
        throw new ParseError(`the command ${name}`);
    }
  }

  #root(): Node {
    let degree: Node = integer(2);
    if (this.accept('[')) {
      degree = this.nested(() => this.sum());
      this.expect(']');
    }
    const value = this.is('(') ? this.nested(() => this.#primary()) : this.#argument();
    return { kind: 'call', name: 'root', items: [value, degree] };
  }

  #rounded(name: 'floor' | 'ceil'): Node {
    const value = this.nested(() => this.sum());
    this.expect(name === 'floor' ? 'rfloor' : 'rceil');
    return { kind: 'call', name, items: [value] };
  }

  /** sin x, \sin^2 x, \log_2 8, f(x) with brackets: without them the argument is the product that follows. */
  #call(name: string): Node {
    let base: Node = name === 'log' ? integer(10) : integer(0);
    if (name === 'log' && this.accept('_')) base = this.#argument();
    const exponent = this.accept('^') ? this.#argument() : undefined;
    const argument = this.nested(() => this.#callArgument());
    const call: Node = { kind: 'call', name, items: name === 'log' ? [argument, base] : [argument] };
    if (FUNCTIONS[name]!.arguments !== call.items.length) throw new ParseError(`${name} with too few values`);
    if (exponent === undefined) return call;
    // \sin^{-1} is the inverse function.
    if (exponent.kind === 'number' && exponent.value.n === -1n && Object.hasOwn(FUNCTIONS, `arc${name}`)) {
      return { ...call, name: `arc${name}` };
    }
    return { kind: 'power', items: [call, exponent] };
  }
  #callArgument(): Node {
    if (this.is('(', '{', '|')) return this.#primary();
    const factors = [this.#power()];
    while (
      this.next !== undefined &&
      this.#startsFactor(this.next) &&
      !this.is('(', '[') &&
      !Object.hasOwn(FUNCTIONS, this.next.value)
    ) {
      factors.push(this.#power());
    }
    return factors.length === 1 ? factors[0]! : { kind: 'product', items: factors };
  }
}
