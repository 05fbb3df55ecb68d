import { preview } from '../../episode/explain.ts';

export interface ScoreRange {
  readonly min: number;
  readonly max: number;
}

/** A JSON object that stands at the end is looked for at so many brackets, from the last one back. */
const MAX_BRACKETS = 64;
const NUMBER = String.raw`([-+]?\d+(?:\.\d+)?)(?:\s*/\s*(\d+(?:\.\d+)?))?`;
const VALUE = new RegExp(`^${NUMBER}$`);
const LINE = new RegExp(`^score\\s*[:=]\\s*${NUMBER}\\s*\\.?$`, 'i');

/**
 * The score that a judge's answer ends with: a JSON object with `score` (fenced or not), or a last line `Score: n`
 * (`n/max` too). Only the end counts: what stands before may be quoted from the answer that is judged.
 * @throws Error that says why there is none in [min, max]
 */
export function readScore(text: string, { min, max }: ScoreRange): number {
  const end = text.replace(/\s*```\s*$/, '').trimEnd();
  const [value, outOf] = lastScore(end);
  if (outOf !== undefined && outOf !== max) throw new Error(`the score is out of ${outOf}, not out of ${max}`);
  if (!(value >= min && value <= max)) throw new Error(`the score ${value} is not between ${min} and ${max}`);
  return value;
}

/** The number, and what it is said to be out of. */
function lastScore(end: string): [number, number?] {
  if (end.endsWith('}')) {
    const score = scoreOf(lastObject(end));
    if (typeof score === 'number') return [score];
    const match = typeof score === 'string' ? VALUE.exec(score.trim()) : null;
    if (match) return numbersOf(match);
  }
  const line = end.slice(end.lastIndexOf('\n') + 1).replace(/[*_#`>]/g, '');
  const match = LINE.exec(line.trim());
  if (match) return numbersOf(match);
  throw new Error(`no score at its end, neither {"score": n} nor a last line "Score: n": ${preview(end.slice(-56))}`);
}

const numbersOf = ([, value, outOf]: RegExpExecArray): [number, number?] =>
  outOf === undefined ? [Number(value)] : [Number(value), Number(outOf)];

const scoreOf = (value: unknown) =>
  typeof value === 'object' && value !== null ? (value as { readonly score?: unknown }).score : undefined;

/** The JSON object that reaches to the end; undefined where there is none. */
function lastObject(end: string): unknown {
  let start = end.length;
  for (let tried = 0; tried < MAX_BRACKETS && start > 0; tried++) {
    start = end.lastIndexOf('{', start - 1);
    if (start < 0) return undefined;
    const value = parsed(end.slice(start));
    if (value !== undefined) return value;
  }
  return undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the object begins further to the left, if anywhere
  }
}
