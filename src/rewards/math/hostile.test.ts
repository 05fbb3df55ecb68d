import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { equivalent } from './equivalent.ts';
import { extractAnswer, labelAnswer } from './extract.ts';
import { parseAnswer } from './parse-answer.ts';
import { TIMED_OUT, WorkerPool } from './pool.ts';
import type { MathVerdict } from './verify.ts';
import { verifyMath } from './verify.ts';
import type { VerifyJob } from './worker.ts';

/** Of each property; FUZZ=100 tries a hundred times as much. */
const numRuns = 1500 * Number(process.env.FUZZ ?? 1);

const MB = 2 ** 20;
const nested = (open: string, close: string, times: number) => `${open.repeat(times)}7${close.repeat(times)}`;

/** Answers that try to be right by chance, or to hold the verifier up. The label is 7. */
const HOSTILE: Readonly<Record<string, string>> = {
  nothing: '',
  'white space': ' \n\t ',
  'an empty box': '\\boxed{}',
  'a list of numbers': `\\boxed{${Array.from({ length: 50 }, (_, i) => i).join(', ')}}`,
  'a list of choices': '\\boxed{5 \\text{ or } 6 \\text{ or } 7}',
  'a set of 10 000 numbers': `\\boxed{\\{${Array.from({ length: 10_000 }, (_, i) => i).join(',')}\\}}`,
  'both signs': '\\boxed{\\pm 7}',
  'a box of every number': Array.from({ length: 1000 }, (_, i) => `\\boxed{${i}}`).join('\n'),
  'every real number': '\\boxed{(-\\infty,\\infty)}',
  'an identity': '\\boxed{x = x}',
  'the label and a condition': '\\boxed{7 = x = 8}',
  'an enormous exponent': '\\boxed{7^{9999999999}}',
  'a tower': '\\boxed{9^{9^{9^{9^{9}}}}}',
  'a tower that cancels': '\\boxed{7+9^{9^{9^9}}-9^{9^{9^9}}+1}',
  'e notation': '\\boxed{7e999999999}',
  'a factorial of a factorial': '\\boxed{100!!!}',
  'a thousand factorials': `\\boxed{3${'!'.repeat(1000)}}`,
  'a great binomial': '\\boxed{\\binom{999999999}{499999999}}',
  'a product of powers': `\\boxed{${'(x+1)^{900}'.repeat(300)}}`,
  'a sum of powers': `\\boxed{${Array.from({ length: 400 }, (_, i) => `3^{${i}}`).join('+')}/7^{2000}}`,
  'deep brackets': `\\boxed{${nested('(', ')', 1500)}}`,
  'deep braces': nested('\\boxed{', '}', 20_000),
  'deep fractions': `\\boxed{${'\\frac{1}{1+'.repeat(300)}7${'}'.repeat(300)}}`,
  'deep mixed numbers': `\\boxed{${'2\\frac{'.repeat(50)}x${'}{3}'.repeat(50)}}`,
  'deep roots': `\\boxed{${nested('\\sqrt{', '}', 400)}}`,
  'deep signs': `\\boxed{${'-'.repeat(3001)}7}`,
  'deep bars': `\\boxed{${'|'.repeat(2000)}}`,
  'open brackets': `\\boxed{${'['.repeat(3000)}}`,
  '10 MB of digits': '8'.repeat(10 * MB),
  '10 MB of digits in a box': `\\boxed{${'8'.repeat(10 * MB)}}`,
  '10 MB of open boxes': '\\boxed{'.repeat((10 * MB) / 7),
  '10 MB of boxes': '\\boxed{8}'.repeat((10 * MB) / 9),
  '10 MB of boxes in a list': '\\boxed{7},'.repeat(MB),
  '10 MB of spaces in a sentence': `The answer is 8${' '.repeat(10 * MB)}7`,
  '10 MB of braces': '{'.repeat(5 * MB) + '}'.repeat(5 * MB),
  '10 MB of backslashes': '\\'.repeat(10 * MB),
  '10 MB of white space': `#### ${' '.repeat(10 * MB)}`,
  '10 MB of marks': '#'.repeat(10 * MB),
  '10 MB of phrases': 'answer is '.repeat(MB),
  '10 MB of phrases without their end': 'answer '.repeat((10 * MB) / 7),
  '10 MB of separators': `\\boxed{1${',000'.repeat((10 * MB) / 4)}}`,
  '10 MB of spaces and numbers': `${'1 '.repeat(5 * MB)}8`,
  'control characters': '\\boxed{\u0000\u0007\u001b[2J7}',
  'names of Object': '\\boxed{constructor + \\constructor + __proto__ + \\toString{1}}',
  'half a character': '\\boxed{\ud800}',
};

describe('hostile answers', () => {
  const entry = new URL('./worker.ts', import.meta.url);
  const deadlineMs = 20_000;
  const pool = new WorkerPool<VerifyJob, MathVerdict>({ entry, workers: 1, deadlineMs });
  afterAll(() => pool.close());

  // A deadline only bounds what the test may take; none of these is near it, which `not.toBe(TIMED_OUT)` shows.
  it.each(Object.keys(HOSTILE))('score nothing: %s', async name => {
    const verdict = await pool.run({ text: HOSTILE[name]!, label: '7', options: {} });
    expect(verdict).not.toBe(TIMED_OUT);
    expect((verdict as MathVerdict).correct).toBe(false);
  });

  it.each(['9^{9^{9^{9}}}', '\\binom{999999999}{499999999}', `3${'!'.repeat(1000)}`])(
    'are still themselves where they cannot be computed: %s',
    label => expect(verifyMath(`\\boxed{${label}}`, label).correct).toBe(true),
  );
});

/** Texts built of what answers are built of, so that they get deeper into the parser than random characters do. */
const PIECES = [
  ...'0123456789abcdxyzABe+-*/^_=<>()[]{}|,;.!% \n$&'.split(''),
  ...'\\frac \\sqrt \\boxed{ \\{ \\} \\cup \\in \\pm \\pi \\infty \\sin \\log \\text{ \\left( \\right) ^\\circ \\begin{pmatrix} \\end{pmatrix} \\\\ #### answer:'.split(
    ' ',
  ),
  'and',
  'cm',
  '1,000',
  '0.5',
  '\\overline{3}',
];
const soup = fc.array(fc.constantFrom(...PIECES), { maxLength: 24 }).map(pieces => pieces.join(''));
const anything = fc.oneof(soup, fc.string({ unit: 'binary', maxLength: 60 }));

describe('any text', () => {
  it('is judged without an error', () => {
    fc.assert(
      fc.property(anything, soup, (text, label) => {
        fc.pre(parseAnswer(labelAnswer(label)) !== undefined);
        expect(typeof verifyMath(text, label).correct).toBe('boolean');
      }),
      { numRuns },
    );
  });

  it('equals itself, and equals another one as much as that one equals it', () => {
    fc.assert(
      fc.property(anything, anything, (left, right) => {
        const [a, b] = [parseAnswer(left), parseAnswer(right)];
        fc.pre(a !== undefined && b !== undefined);
        expect(equivalent(a, a)).toBe(true);
        expect(equivalent(a, { ...b, text: `${b.text} ` })).toBe(equivalent(b, { ...a, text: `${a.text} ` }));
      }),
      { numRuns },
    );
  });

  it('equals itself by its meaning, not only by its text', () => {
    fc.assert(
      fc.property(soup, text => {
        const answer = parseAnswer(text);
        fc.pre(answer !== undefined);
        expect(equivalent(answer, { ...answer, text: 'other' })).toBe(true);
      }),
      { numRuns },
    );
  });

  it('gives an answer that, in a box, is extracted again', () => {
    fc.assert(
      fc.property(anything, text => {
        const answer = extractAnswer(text);
        fc.pre(answer !== undefined && /^[^{}\\]*$/.test(answer));
        expect(extractAnswer(`\\boxed{${answer}}`)).toBe(answer);
      }),
      { numRuns },
    );
  });
});

describe('arithmetic', () => {
  const whole = fc.integer({ min: -999, max: 999 });
  it('agrees with numbers: fractions, decimals, sums', () => {
    fc.assert(
      fc.property(whole, fc.integer({ min: 1, max: 999 }), whole, (a, b, c) => {
        const same = (x: string, y: string) => equivalent(parseAnswer(x)!, parseAnswer(y)!);
        expect(same(`\\frac{${a}}{${b}}`, `${a * 7}/${b * 7}`)).toBe(true);
        expect(same(`\\frac{${a}}{${b}}`, `\\frac{${a + 1}}{${b}}`)).toBe(false);
        expect(same(`${a}+${c}`.replace('+-', '-'), String(a + c))).toBe(true);
        expect(same(`${a / 8}`, `\\frac{${a}}{8}`)).toBe(true);
        expect(same(`(x+${b})^2`, `x^2+${2 * b}x+${b * b}`)).toBe(true);
        expect(same(`(x+${b})^2`, `x^2+${2 * b}x+${b * b + 1}`)).toBe(false);
      }),
    );
  });
});
