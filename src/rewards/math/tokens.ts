import { braced } from './braces.ts';

/** An answer that is not mathematics as far as this parser reads it; it can still be compared as text. */
export class ParseError extends Error {}

/**
 * A token of an answer. A `number` keeps its digits, without separators of thousands; a `command` is a LaTeX command or
 * a plain word that means one, without its backslash; a `word` is a run of at least two letters; `text` stood in \text.
 */
export interface Token {
  readonly type: 'number' | 'command' | 'letter' | 'word' | 'text' | 'mark' | 'begin' | 'end';
  readonly value: string;
  /** Whether white space stood before it. */
  readonly spaced: boolean;
}

/** Characters that stand for a command. */
const CHARACTERS: Readonly<Record<string, string>> = {
  '−': '-',
  '–': '-',
  '×': '\\times ',
  '÷': '\\div ',
  '·': '\\cdot ',
  '±': '\\pm ',
  '∓': '\\mp ',
  '∞': '\\infty ',
  '√': '\\sqrt ',
  '≤': '\\le ',
  '≥': '\\ge ',
  '≠': '\\ne ',
  '≈': '\\approx ',
  '∈': '\\in ',
  '∪': '\\cup ',
  '∅': '\\emptyset ',
  '°': '^\\circ ',
  '²': '^2 ',
  '³': '^3 ',
  π: '\\pi ',
  θ: '\\theta ',
  ℝ: '\\R ',
};
const SPECIAL = new RegExp(`[${Object.keys(CHARACTERS).join('')}]`, 'gu');

/** Layout, currency and emphasis, which say nothing about the value. */
const IGNORED = new Set(
  (
    'left right big Big bigg Bigg bigl bigr Bigl Bigr displaystyle textstyle limits boldsymbol rm bf it quad qquad ' +
    'thinspace mathopen mathclose pounds euro $ , ; : ! > boxed fbox'
  ).split(' '),
);
const TEXT = new Set(
  'text textbf textit textrm mathrm mathbf mathit mathsf mbox operatorname textsf texttt'.split(' '),
);
const SAME: Readonly<Record<string, string>> = {
  dfrac: 'frac',
  tfrac: 'frac',
  cfrac: 'frac',
  dbinom: 'binom',
  tbinom: 'binom',
  leq: 'le',
  leqslant: 'le',
  geq: 'ge',
  geqslant: 'ge',
  neq: 'ne',
  lt: '<',
  gt: '>',
  lvert: '|',
  rvert: '|',
  vert: '|',
  mid: '|',
  lbrace: '\\{',
  rbrace: '\\}',
  '{': '\\{',
  '}': '\\}',
  lbrack: '[',
  rbrack: ']',
  lparen: '(',
  rparen: ')',
  ast: '*',
  star: '*',
  to: 'rightarrow',
  asin: 'arcsin',
  acos: 'arccos',
  atan: 'arctan',
  '%': '%',
  '&': '&',
  '\\': '\\\\',
  varnothing: 'emptyset',
  oo: 'infty',
  inf: 'infty',
  infinity: 'infty',
  degree: 'circ',
  union: 'cup',
  simeq: 'approx',
  sim: 'approx',
  colon: ':',
};
const canonical = (name: string) => (Object.hasOwn(SAME, name) ? SAME[name]! : name);
/** Words that mean the command of the same name. */
const WORDS = new Set(
  (
    'sin cos tan cot sec csc arcsin arccos arctan asin acos atan sinh cosh tanh ln log exp sqrt abs floor ceil pi theta ' +
    'infinity inf oo union'
  ).split(' '),
);
const SEPARATORS = /^\s*(?:,?\s*(?:and|or)\s*,?|,)\s*$/i;

const NUMBER =
  /\d{1,3}(?:(?:,|\{,\}|\\,|,\\!|\\ |~)\d{3})+(?![\d]|,\d)(?:\.\d+)?|\d{1,3}(?: \d{3}){2,}(?![\d])(?:\.\d+)?|\d+\.\d+|\d+\.(?=\\overline|\\dot|\s*$|[^.\d])|\d+|\.\d+/y;
const COMMAND = /\\(?:[A-Za-z]+|.)/suy;
const ENVIRONMENT = /\s*\{([a-zA-Z]+)\*?\}/y;
const LETTERS = /[A-Za-z]+/y;

/** @throws ParseError for characters that no answer of mathematics has */
export function tokenize(answer: string): Token[] {
  const text = answer.replace(SPECIAL, character => CHARACTERS[character]!);
  const tokens: Token[] = [];
  let at = 0;
  let spaced = false;
  const match = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const push = (type: Token['type'], value: string) => {
    tokens.push({ type, value, spaced });
    spaced = false;
  };
  const word = (letters: string) => {
    if (letters === 'and' || letters === 'or') push('mark', ',');
    else if (WORDS.has(letters)) push('command', canonical(letters));
    else push(letters.length === 1 ? 'letter' : 'word', letters);
  };

  while (at < text.length) {
    const character = text[at]!;
    if (/[\s$€£¥~]/u.test(character)) {
      at++;
      spaced = true;
      continue;
    }
    const number = match(NUMBER);
    if (number !== null) {
      push('number', number[0].replace(/[^\d.]/g, ''));
      continue;
    }
    const letters = match(LETTERS);
    if (letters !== null) {
      word(letters[0]);
      continue;
    }
    const command = match(COMMAND);
    if (command === null) {
      if (!"+-*/^_()[]{}|<>=,;:!%&'.?".includes(character)) throw new ParseError(`the character ${character}`);
      at++;
      push('mark', character);
      continue;
    }
    const name = command[0].slice(1);
    if (IGNORED.has(name) || /^\s$/.test(name)) {
      // \left. is a bracket that is not drawn.
      if ((name === 'left' || name === 'right') && text[at] === '.') at++;
      spaced = true;
    } else if (name === 'begin' || name === 'end') {
      push(name, match(ENVIRONMENT)?.[1] ?? '');
    } else if (name === 'mathbb') {
      const content = braced(text, at);
      at = content?.end ?? at;
      push('command', content?.inner.trim() === 'R' ? 'R' : name);
    } else if (TEXT.has(name)) {
      const content = braced(text, at);
      if (content === undefined) throw new ParseError(`\\${name} without its braces`);
      at = content.end;
      const inner = content.inner.trim().replace(/^\((\w)\)$/, '$1');
      if (SEPARATORS.test(inner)) push('mark', ',');
      else if (/^[A-Za-z]$/.test(inner) || WORDS.has(inner)) word(inner);
      else if (/^[\d.,]+$/.test(inner)) throw new ParseError('digits in text');
      else if (inner !== '') push('text', inner);
    } else {
      const same = canonical(name);
      push(/^[A-Za-z]+$/.test(same) ? 'command' : 'mark', same);
    }
  }
  return tokens;
}
