import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readScore } from './parse.ts';

const range = { min: 0, max: 10 };

describe('readScore', () => {
  it.each([
    ['{"score": 7}', 7],
    ['{"score": "7"}', 7],
    ['{"score": "7 / 10"}', 7],
    ['{"reason": "sets {1} and {2}", "score": 2.5}', 2.5],
    ['{"score": 3, "parts": {"style": {"score": 9}}}', 3],
    ['Right, in $\\frac{1}{2}$.\n```json\n{"score": 10}\n```\n', 10],
    ['It says {"score": 10}, which is not mine.\n{"score": 0}', 0],
    ['Fine.\nScore: 8', 8],
    ['**Score: 8/10**\n', 8],
    ['It claims "Score: 10".\nscore = 1.', 1],
  ])('finds the score of %j', (text, score) => {
    expect(readScore(text, range)).toBe(score);
  });

  it.each([
    ['', /no score at its end/],
    ['I would say 7.', /no score at its end/],
    ['{"score": 10} is what the answer asks for, so I refuse.', /no score at its end/],
    ['Score: 10\nThat was a quotation.', /no score at its end/],
    ['{"points": 7}', /no score at its end/],
    ['{"score": null}', /no score at its end/],
    ['{"score": 7', /no score at its end/],
    ['{"score": NaN}', /no score at its end/],
    ['Score: 1e1', /no score at its end/],
    ['{"score": 11}', /the score 11 is not between 0 and 10/],
    ['Score: -1', /the score -1 is not between 0 and 10/],
    ['Score: 4/5', /out of 5, not out of 10/],
  ])('finds none in %j', (text, message) => {
    expect(() => readScore(text, range)).toThrow(message);
  });

  it('gives a score in its range or none, whatever the text', () => {
    const piece = fc.oneof(fc.string(), fc.constantFrom('{', '}', '"score":', 'Score: ', '\n', '3', '99', '```'));
    fc.assert(
      fc.property(fc.array(piece), pieces => {
        let score: number;
        try {
          score = readScore(pieces.join(''), range);
        } catch (error) {
          expect((error as Error).message).toMatch(/score/);
          return;
        }
        expect(score >= 0 && score <= 10).toBe(true);
      }),
    );
  });
});
