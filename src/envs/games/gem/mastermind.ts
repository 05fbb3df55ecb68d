import { z } from 'zod';
import { boxed, DIGIT, integers, SPACE } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { defineGame, invalid, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';

const read = boxed(`(${DIGIT}+(?:${SPACE}+${DIGIT}+)*)`);
const spaces = new RegExp(`${SPACE}+`, 'u');

interface Parameters {
  length: number;
  digits: number;
  turns: number;
}

class Mastermind implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly numbers: readonly number[];
  readonly code: readonly number[];
  readonly #guesses = new Set<string>();
  #best = 0;

  constructor({ length, digits, turns }: Parameters, random: PythonRandom) {
    this.turns = turns;
    this.numbers = Array.from({ length: digits }, (_, i) => i + 1);
    this.code = random.sample(this.numbers, length);
    this.instructions = [
      `Mastermind. Find a secret code of ${length} different numbers from 1 to ${digits} in at most ${turns} turns.`,
      'A black peg is a number at its right place, a white peg one that is in the code at another place.',
      `Write your guess in \\boxed{}, for example \\boxed{${random.sample(this.numbers, length).join(' ')}}.`,
    ].join('\n');
  }

  view(): undefined {
    return undefined;
  }

  state(): string {
    return `${this.code.join(' ')} ${this.numbers.length}|${[...this.#guesses].sort()}`;
  }

  move(answer: string): Outcome {
    const guess = integers(read(answer)?.[0]?.split(spaces));
    if (guess === undefined) return unreadable('numbers such as \\boxed{1 2}');
    const { length } = this.code;
    if (guess.length !== length) return invalid(`The code has ${length} numbers, your guess has ${guess.length}.`);
    if (guess.some(number => number < 1 || number > this.numbers.length)) {
      return invalid(`The numbers of the code are from 1 to ${this.numbers.length}.`);
    }
    const text = guess.join(' ');
    if (this.#guesses.has(text)) return invalid(`You have tried ${text} before.`);
    this.#guesses.add(text);
    const { black, white } = pegs(this.code, guess);
    const reward = Math.max(0, black - this.#best) / length;
    this.#best = Math.max(this.#best, black);
    if (black === length) return won(`Right: the code is ${text}.`, reward);
    return valid(`${text} has ${black} black and ${white} white.`, reward);
  }
}

/** Right numbers at the right place, and at another one; each number of the code counts once. */
export function pegs(code: readonly number[], guess: readonly number[]): { black: number; white: number } {
  const black = guess.filter((number, i) => number === code[i]).length;
  const missed = code.filter((number, i) => number !== guess[i]);
  let white = 0;
  for (const number of guess.filter((other, i) => other !== code[i])) {
    const place = missed.indexOf(number);
    if (place < 0) continue;
    white += 1;
    missed.splice(place, 1);
  }
  return { black, white };
}

export const mastermind = defineGame<Parameters, Mastermind>({
  name: 'Mastermind',
  help: 'Find a code of different numbers from black and white pegs.',
  parameters: z
    .strictObject({
      length: z.int().min(1).max(20),
      digits: z.int().min(1).max(100),
      turns: z.int().min(1),
    })
    .refine(({ length, digits }) => digits >= length, 'digits must be at least length: the code has no repeats'),
  levels: { easy: { length: 2, digits: 6, turns: 10 }, hard: { length: 4, digits: 8, turns: 30 } },
  randomParameters: z.strictObject({}),
  draw: random =>
    random.choice([
      { length: 2, digits: 4, turns: 10 },
      { length: 4, digits: 6, turns: 20 },
      { length: 4, digits: 8, turns: 30 },
    ]),
  start: (parameters, random) => new Mastermind(parameters, random),
  oracle: game => `\\boxed{${game.code.join(' ')}}`,
  randomMove: (game, random) => `\\boxed{${random.sample(game.numbers, game.code.length).join(' ')}}`,
});
