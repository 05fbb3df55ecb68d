import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EXTRACTIONS } from './extract.ts';
import { verifyMath } from './verify.ts';

interface Pair {
  readonly gold: string;
  readonly text: string;
  /** The text is not a box alone. */
  readonly isText: boolean;
  readonly equal: boolean;
  /** Why math-verify says something else, where it does. */
  readonly reason: string | undefined;
  readonly mathVerify: boolean;
}

const read = (name: string) =>
  readFileSync(new URL(`../../../tests/goldens/math/${name}`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');

/** tools/golden/math_answers.py says what the files hold. */
function pairs(): Map<string, Pair[]> {
  const groups = new Map<string, Pair[]>();
  const verdicts = read('verdicts.txt');
  let group: Pair[] = [];
  let at = 0;
  for (const line of read('pairs.txt')) {
    const [gold = '', answer, verdict, reason] = line.split(' ~~ ');
    if (answer === undefined) {
      if (line === '') continue;
      group = [];
      groups.set(line.slice(3), group);
      continue;
    }
    const isText = gold.startsWith('text:');
    group.push({
      gold: isText ? gold.slice(5).trim() : gold,
      text: isText ? answer.replaceAll('\\n', '\n') : `\\boxed{${answer}}`,
      isText,
      equal: verdict === '=',
      reason,
      mathVerify: verdicts[at++] === '=',
    });
  }
  expect(at).toBe(verdicts.length);
  return groups;
}

describe('verifyMath', () => {
  const groups = pairs();
  const all = [...groups.values()].flat();

  it.each([...groups])('judges %s', (_, group) => {
    const wrong = group.filter(({ gold, text, equal }) => verifyMath(text, gold).correct !== equal);
    expect(wrong.map(({ gold, text, equal }) => `${gold} ${equal ? '=' : '!='} ${text}`)).toEqual([]);
  });

  it('differs from math-verify only where the pair says why', () => {
    expect(all.length).toBeGreaterThanOrEqual(500);
    const unexplained = all.filter(
      ({ equal, mathVerify, reason }) => (equal !== mathVerify) !== (reason !== undefined),
    );
    expect(unexplained).toEqual([]);
    expect(all.filter(({ equal, mathVerify }) => equal !== mathVerify)).toHaveLength(54);
  });

  it('judges alike with label and answer exchanged', () => {
    const asymmetric = all
      .filter(({ isText }) => !isText)
      .filter(({ gold, text, equal }) => verifyMath(`\\boxed{${gold}}`, text).correct !== equal);
    expect(asymmetric).toEqual([]);
  });

  it('accepts every label of GSM8K behind ####, in a box, in a sentence and with separators', () => {
    const rows = readFileSync(new URL('../../../examples/gsm8k/test.jsonl', import.meta.url), 'utf8').trimEnd();
    for (const row of rows.split('\n')) {
      const { label } = JSON.parse(row) as { label: string };
      const grouped = label.replace(/\B(?=(\d{3})+$)/g, ',');
      const texts = [
        `so\n#### ${label}`,
        `\\boxed{${label}}`,
        `The answer is ${label}.`,
        `So it is $${grouped} in all`,
      ];
      expect(texts.map(text => verifyMath(text, label).correct)).toEqual([true, true, true, true]);
      expect(verifyMath(`#### ${label}1`, label).correct).toBe(false);
    }
  });

  it('looks only where it is told to', () => {
    expect(
      EXTRACTIONS.map(way => verifyMath('1 \\boxed{2}\n#### 3\nThe answer is 4\n5', '5', { extract: [way] }).answer),
    ).toEqual(['2', '3', '4', '5']);
    expect(verifyMath('so 5', '5', { extract: ['boxed', 'hash'] })).toEqual({ correct: false, answered: false });
  });

  it('rounds at the place that it is told', () => {
    expect(verifyMath('#### 0.333', '1/3', { precision: 3 }).correct).toBe(true);
    expect(verifyMath('#### 0.333', '1/3', { precision: 4 }).correct).toBe(false);
  });

  it('knows multiples of equations and inequalities with irrational numbers', () => {
    const label = 'y - \\sqrt{2}x < 1';
    const same = ['2y - 2\\sqrt{2}x < 2', '\\sqrt{2}y - 2x < \\sqrt{2}', '-y + \\sqrt{2}x > -1'];
    const other = ['\\sqrt{2}y - 2x > \\sqrt{2}', 'y - \\sqrt{2}x < 2', 'y - \\sqrt{3}x < 1'];
    const verdicts = [...same, ...other].map(answer => verifyMath(`\\boxed{${answer}}`, label).correct);
    expect(verdicts).toEqual([true, true, true, false, false, false]);
  });

  it('takes a solution for a label', () => {
    expect(verifyMath('#### 72', '48 + 24 = 72\n#### 72').correct).toBe(true);
    expect(verifyMath('\\boxed{\\frac12}', 'Thus $\\boxed{0.5}$.').correct).toBe(true);
  });

  it.each(['', '  ', '\\boxed{}', `${'1'.repeat(5000)}`])('refuses the label %j', label => {
    expect(() => verifyMath('1', label)).toThrow(/has no answer to compare with; give one of 1 to 4096 characters/);
  });
});
