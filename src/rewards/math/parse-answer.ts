import { ExpressionParser } from './parse.ts';
import type { Node, Relation } from './syntax.ts';
import { ParseError } from './tokens.ts';

/** Longer answers are not read: they are wrong. */
export const MAX_ANSWER_LENGTH = 4096;
/** So are answers that list more than this: comparing sets takes time with the square of it. */
export const MAX_ITEMS = 100;

/** An answer as read, and as text. */
export interface Answer {
  readonly node: Node;
  /** Without layout; words without regard to case. */
  readonly text: string;
}

/**
 * Reads an answer in LaTeX or plain notation. What is not mathematics is text; undefined for an answer that is empty or
 * longer than `MAX_ANSWER_LENGTH`. Never throws on any text.
 */
export function parseAnswer(raw: string): Answer | undefined {
  if (raw.length > MAX_ANSWER_LENGTH) return undefined;
  const text = plainText(raw);
  if (text === '') return undefined;
  try {
    return { node: new AnswerParser(raw).answer(), text };
  } catch (error) {
    if (error instanceof ParseError) return { node: { kind: 'text', text }, text };
    throw error;
  }
}

/** What the reader of a printed answer would call the same words. */
export function plainText(raw: string): string {
  const text = raw
    .replace(/\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname)\s*(?=\{)/g, '')
    .replace(/\\(?:left|right|displaystyle|[,;:! ])|[${}*]/g, ' ')
    .replace(/\s+/g, ' ')
    .replace(/^[\s.]+|[\s.]+$/g, '')
    .replace(/^\((.)\)$/, '$1');
  return /^[A-Za-z]{2}[A-Za-z '-]*$/.test(text) ? text.toLowerCase() : text;
}

const RELATIONS: ReadonlyMap<string, Relation> = new Map([
  ['=', '='],
  ['approx', '='],
  ['ne', '!='],
  ['<', '<'],
  ['>', '>'],
  ['le', '<='],
  ['ge', '>='],
  ['in', 'in'],
]);
const MATRICES = new Set(['pmatrix', 'bmatrix', 'matrix', 'Bmatrix', 'smallmatrix', 'array']);

/** Reads what may stand around scalars: conditions, intervals, sets, tuples, matrices, lists. */
class AnswerParser extends ExpressionParser {
  answer(): Node {
    const items = this.#items(() => this.#relation(), [',', ';']);
    this.accept('.');
    if (this.next !== undefined) throw new ParseError(`${this.next.value} behind an answer`);
    if (items.length === 0) throw new ParseError('nothing');
    return items.length === 1 ? items[0]! : { kind: 'list', items };
  }

  #items(read: () => Node, separators: readonly string[]): Node[] {
    const items = [read()];
    while (this.accept(...separators)) {
      // "a, b, and c"
      this.accept(',');
      items.push(read());
      if (items.length > MAX_ITEMS) throw new ParseError(`more than ${MAX_ITEMS} items`);
    }
    return items;
  }

  #relation(): Node {
    const items = [this.#union()];
    const operators: Relation[] = [];
    for (;;) {
      const operator = this.next?.type === 'text' ? undefined : RELATIONS.get(this.next?.value ?? '');
      if (operator === undefined) break;
      this.at++;
      operators.push(this.accept('=') && (operator === '<' || operator === '>') ? `${operator}=` : operator);
      items.push(this.#union());
    }
    return operators.length === 0 ? items[0]! : { kind: 'relation', operators, items };
  }

  #union(): Node {
    const items = [this.sum()];
    while (this.accept('cup')) items.push(this.sum());
    return items.length === 1 ? items[0]! : { kind: 'union', items };
  }

  /** {1, 2} for \{1, 2\} */
  protected override inBraces(): Node {
    const items = this.#items(() => this.#relation(), [',']);
    return items.length === 1 ? items[0]! : { kind: 'set', items };
  }

  protected override bracketed(): Node {
    const open = this.next!.value;
    this.at++;
    if (open === '\\{' && this.accept('\\}')) return { kind: 'set', items: [] };
    const items = this.#items(() => this.#relation(), [',', ';']);
    const [low, high, ...more] = items;
    const close = this.next?.value;
    this.at++;
    if (open === '\\{' && close === '\\}') return { kind: 'set', items };
    if (open === 'langle' && close === 'rangle' && high !== undefined) return { kind: 'tuple', items };
    if ((open !== '(' && open !== '[') || (close !== ')' && close !== ']')) throw new ParseError('brackets');
    if (high === undefined) {
      if (open === '[' || close === ']') throw new ParseError('brackets around one value');
      return low!;
    }
    if (more.length > 0 || (open === '(' && close === ')')) return { kind: 'tuple', items };
    return { kind: 'interval', items: [low!, high], open: [open === '(', close === ')'] };
  }

  protected override environment(name: string): Node {
    this.at++;
    if (!MATRICES.has(name)) throw new ParseError(`the environment ${name}`);
    if (name === 'array') {
      while (this.next !== undefined && !this.accept('}')) this.at++;
    }
    const items: Node[] = [];
    let rows = 0;
    for (;;) {
      do items.push(this.sum());
      while (this.accept('&'));
      rows++;
      if (items.length > MAX_ITEMS) throw new ParseError(`more than ${MAX_ITEMS} entries`);
      const more = this.accept('\\\\');
      if (this.next?.type === 'end') break;
      if (!more) throw new ParseError('a matrix without its end');
    }
    this.at++;
    if (items.length % rows !== 0) throw new ParseError('rows of different lengths');
    return { kind: 'matrix', columns: items.length / rows, items };
  }
}
