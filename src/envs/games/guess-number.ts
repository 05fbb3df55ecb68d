import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { z } from 'zod';
import type { StepResult } from '../contracts.ts';
import { defineEnvironment } from '../definition.ts';

/**
 * Find a number in few guesses.
 *
 *   user       1-8       the range
 *   assistant  6         a guess
 *   user       <         the number is smaller (`<`), larger (`>`), or the guess is not a number (`?`)
 *
 * Reward 1 when the guess is right, else 0. Every answer is a guess. Binary search finds 7 of 8 numbers in three
 * guesses, and no strategy finds more: 0.875 is the best mean reward for the default parameters.
 */
export const guessNumber = defineEnvironment({
  name: 'guess-number',
  version: 1,
  help: 'Find a number in few guesses; told only whether it is smaller or larger.',
  parameters: z
    .strictObject({
      low: z.int().default(1),
      high: z.int().default(8),
      guesses: z.int().min(1).default(3),
    })
    .refine(
      ({ low, high }) => low >= 0 && high >= low && high <= 1_000_000,
      'low and high must be 0 <= low <= high <= 1000000',
    ),
  maxTurns: ({ guesses }) => guesses,
  players: ({ low, high }) => ({
    random: ({ seed }) => {
      // Not the stream that the number is drawn from.
      const dice = xoroshiro128plus(Math.imul(seed + 1, 0x9e3779b1));
      return () => `${uniformInt(dice, low, high)}`;
    },
    // By halves, from what it is told alone.
    oracle: () => {
      let [from, to] = [low, high];
      let middle = 0;
      return seen => {
        const told = typeof seen === 'string' ? seen : (seen.at(-1)?.content ?? '');
        if (told === '<') to = middle - 1;
        if (told === '>') from = middle + 1;
        middle = Math.floor((from + to) / 2);
        return `${middle}`;
      };
    },
  }),
  make({ low, high, guesses }) {
    let secret = low;
    let asked = 0;
    let history = '';
    return {
      reset(_task, { seed }) {
        secret = uniformInt(xoroshiro128plus(seed | 0), low, high);
        return { observation: [{ role: 'user', content: `${low}-${high}` }], stateKey: history };
      },
      step({ actionText, finishReason }): StepResult {
        asked += 1;
        const valid = finishReason !== 'length' && /^\d{1,7}$/.test(actionText);
        const guess = valid ? Number(actionText) : Number.NaN;
        const correct = guess === secret ? 1 : 0;
        const metrics = { correct, invalid: valid ? 0 : 1 };
        const isVoid = !valid;
        if (correct === 1 || asked >= guesses) return { reward: correct, done: true, isVoid, metrics };
        const content = !valid ? '?' : secret < guess ? '<' : '>';
        history += `${valid ? guess : ''}${content}`;
        return { reward: 0, done: false, feedback: [{ role: 'user', content }], stateKey: history, isVoid, metrics };
      },
    };
  },
});
