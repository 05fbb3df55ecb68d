/**
 * Moves are read as Python's `re` reads them: the last `\boxed{…}` that fits counts, `\d` is any decimal digit of Unicode
 * and `\s` Python's white space. Patterns are linear in the text, whatever it is.
 */
export const SPACE = '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
export const DIGIT = '\\p{Nd}';

/** CPython refuses to read longer integers (sys.set_int_max_str_digits), and GEM then takes the move for unreadable. */
const MAX_DIGITS = 4300;

/** A reader of moves: the groups of the last match of `content` in `\boxed{…}`, undefined if there is none. */
export function boxed(content: string, flags: 'u' | 'iu' = 'u'): (answer: string) => readonly string[] | undefined {
  const pattern = new RegExp(`\\\\boxed\\{${content}\\}`, `g${flags}`);
  return answer => {
    let groups: readonly string[] | undefined;
    for (const match of answer.matchAll(pattern)) groups = match.slice(1);
    return groups;
  };
}

/** The number that decimal digits of any script spell; Infinity if it is huge, undefined beyond Python's limit. */
export function integer(digits: string): number | undefined {
  const points = [...digits];
  if (points.length > MAX_DIGITS) return undefined;
  return Number(points.map(digitValue).join(''));
}

/** The numbers of a move; undefined if one cannot be read. */
export function integers(groups: readonly string[] | undefined): readonly number[] | undefined {
  const values = groups?.map(integer);
  return values?.every(value => value !== undefined) ? (values as number[]) : undefined;
}

/** Unicode keeps the digits of a script together, 0 to 9, so that the place in their run tells the value. */
function digitValue(digit: string): number {
  const point = digit.codePointAt(0)!;
  if (point < 0x80) return point - 0x30;
  let zero = point;
  while (/^\p{Nd}$/u.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return (point - zero) % 10;
}
