/**
 * Where an answer may stand in a text: in the last \boxed{…}; behind the last `####`, as in GSM8K; behind the last "the
 * answer is" or "answer:"; the last number.
 */
export const EXTRACTIONS = ['boxed', 'hash', 'phrase', 'number'] as const;
export type Extraction = (typeof EXTRACTIONS)[number];

/**
 * The answer that a text gives, in the first of the ways that finds one: a text that has a box is judged by its box.
 * Undefined when there is none. Takes time linear in the text.
 */
export function extractAnswer(text: string, ways: readonly Extraction[] = EXTRACTIONS): string | undefined {
  for (const way of ways) {
    const found = EXTRACT[way](text);
    if (found !== undefined) return found.trim();
  }
  return undefined;
}

const EXTRACT: Readonly<Record<Extraction, (text: string) => string | undefined>> = {
  boxed,
  hash(text) {
    const at = text.lastIndexOf('####');
    return at < 0 ? undefined : withoutFullStop(lineAt(text, at + 4));
  },
  phrase,
  number,
};

/** Boxes that stand side by side, with only "and", "or" or a comma between them, are one list. */
const BETWEEN_BOXES = /^[\s$,;]*(?:\\text\{)?\s*(?:and|or)?\s*\}?[\s$,;]*$/;
const MAX_BETWEEN = 40;
/** More of them are not read as an answer anyway. */
const MAX_BOXES = 100;

function boxed(text: string): string | undefined {
  const boxes = outerBoxes(text);
  const last = boxes.at(-1);
  // A text that ends inside its box has not given its answer.
  if (last === undefined) return /\\(?:boxed|fbox)\s{0,4}\{/.test(text) ? '' : undefined;
  const together = [last.inner];
  for (let i = boxes.length - 2; i >= 0 && together.length <= MAX_BOXES; i--) {
    const [{ end, inner }, { start }] = [boxes[i]!, boxes[i + 1]!];
    if (start - end > MAX_BETWEEN) break;
    const between = text.slice(end, start);
    if (!BETWEEN_BOXES.test(between) || !/[,;a-z]/.test(between)) break;
    together.unshift(inner);
  }
  return together.join(', ');
}

interface Box {
  readonly start: number;
  readonly end: number;
  readonly inner: string;
}

/** Every complete box that is not inside another one, in one pass: a box that never closes is as if it were not there. */
function outerBoxes(text: string): Box[] {
  const boxes: Box[] = [];
  /** Open braces: of a box, where its command begins; else -1. */
  const open: number[] = [];
  const pattern = /\\(?:boxed|fbox)\s{0,4}\{|\\[\s\S]|[{}]/g;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [found] = match;
    if (found.startsWith('\\') && !found.endsWith('{')) continue;
    if (found === '\\{') continue;
    if (found !== '}') {
      open.push(found === '{' ? -1 : match.index);
      continue;
    }
    const start = open.pop() ?? -1;
    if (start < 0) continue;
    while (boxes.length > 0 && boxes.at(-1)!.start > start) boxes.pop();
    const inner = text.slice(text.indexOf('{', start) + 1, match.index);
    boxes.push({ start, end: pattern.lastIndex, inner });
  }
  return boxes;
}

const PHRASE = /\banswer\s{0,3}(?:is|are|:|=)[\s:*]{0,8}/gi;

/** What follows is no longer the answer: ". It", ", because", but not ", and 3". */
const SENTENCE_END = /[.!?](?=\s)|,?\s+(?:because|since|as|so|which|where|when)\b|,\s+(?!(?:and|or)\b)[a-z]{2,}/i;

function phrase(text: string): string | undefined {
  let at = -1;
  for (const match of text.matchAll(PHRASE)) at = match.index + match[0].length;
  if (at < 0) return undefined;
  const line = lineAt(text, at).trimStart();
  const math = /^(?:\$\$?([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\])/.exec(line);
  if (math !== null) return math[1] ?? math[2] ?? math[3];
  const sentence = SENTENCE_END.exec(line);
  return withoutFullStop((sentence === null ? line : line.slice(0, sentence.index)).replace(/\*+\s*$/, ''));
}

const NUMBERS =
  /(?<![\w.])[-−]?[ ]?[$€£¥]?[-−]?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+)(?:\s?\/\s?\d+)?\s?%?/g;
/** The last number is looked for this far from the end. */
const TAIL = 2000;

function number(text: string): string | undefined {
  let found: string | undefined;
  for (const match of text.slice(-TAIL).matchAll(NUMBERS)) found = match[0];
  // "5 - 3" has no negative number.
  return found?.replace(/^[-−] /, '');
}

/** Longer than an answer may be. */
const MAX_LINE = 8192;

/** From `at` to the end of the line, or what is enough of it. */
function lineAt(text: string, at: number): string {
  const start = at + (/^\s{0,100}/.exec(text.slice(at, at + 100))?.[0].length ?? 0);
  const end = text.indexOf('\n', start);
  return text.slice(start, Math.min(end < 0 ? text.length : end, start + MAX_LINE));
}
const withoutFullStop = (text: string) => text.trim().replace(/\.$/, '');

/** What a label says, which may be a whole solution with its answer marked. */
export function labelAnswer(label: string): string {
  return extractAnswer(label, ['boxed', 'hash']) ?? label.trim();
}
