import { equivalent } from './equivalent.ts';
import { EXTRACTIONS, type Extraction, extractAnswer, labelAnswer } from './extract.ts';
import { type Answer, parseAnswer } from './parse-answer.ts';

export interface VerifyOptions {
  /** Where the answer may stand, tried in this order. Default: all of `EXTRACTIONS`. */
  readonly extract?: readonly Extraction[];
  /** Decimal places that count where a number may have been rounded. Default 6. */
  readonly precision?: number;
}

export interface MathVerdict {
  readonly correct: boolean;
  /** Whether the text gives an answer that can be read: not empty, and of at most 4096 characters. */
  readonly answered: boolean;
  /** As extracted; undefined where the text gives none. Long ones are cut. */
  readonly answer?: string;
}

const SHOWN = 200;

/**
 * Judges the answer that a text ends with against a label, which is an answer itself or a solution with its answer in
 * \boxed{} or behind `####`. Never throws on any text.
 * @throws Error when the label has no answer that can be read: that is a fault of the task, not of the answer
 */
export function verifyMath(text: string, label: string, options: VerifyOptions = {}): MathVerdict {
  const { extract = EXTRACTIONS, precision = 6 } = options;
  const expected = labelOf(label);
  const answer = extractAnswer(text, extract);
  if (answer === undefined) return { correct: false, answered: false };
  const read = parseAnswer(answer);
  const correct = read !== undefined && equivalent(expected, read, { precision });
  return { correct, answered: read !== undefined, answer: answer.slice(0, SHOWN) };
}

/** The answer of a label. */
export function labelOf(label: string): Answer {
  const answer = parseAnswer(labelAnswer(label));
  if (answer !== undefined) return answer;
  const shown = label.length > 60 ? `${label.slice(0, 60)}…` : label;
  throw new Error(`the label ${JSON.stringify(shown)} has no answer to compare with; give one of 1 to 4096 characters`);
}
