import { z } from 'zod';
import { boxed, DIGIT, integers } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { defineGame, invalid, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';

const read = boxed(`(${DIGIT}+)`);

interface Parameters {
  min: number;
  max: number;
  turns: number;
  /** `gem`: 0 is taken for no guess at all and ends the episode. `fixed`: it is a number out of range. */
  rules: 'gem' | 'fixed';
}

class GuessTheNumber implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly min: number;
  readonly max: number;
  readonly #secret: number;
  readonly #rules: Parameters['rules'];
  readonly #guesses = new Set<number>();
  #last = 0;

  constructor({ min, max, turns, rules }: Parameters, random: PythonRandom) {
    this.min = min;
    this.max = max;
    this.turns = turns;
    this.#secret = random.randint(min, max);
    this.#rules = rules;
    this.instructions = [
      `Guess the Number. I think of a whole number from ${min} to ${max}; find it in at most ${turns} turns.`,
      'After each guess I say whether my number is higher or lower.',
      `Write your guess in \\boxed{}, for example \\boxed{${random.randint(min, max)}}. Other text is not read.`,
    ].join('\n');
  }

  view(): undefined {
    return undefined;
  }

  state(): string {
    return `${this.min}-${this.max} ${this.#secret} ${[...this.#guesses].sort((a, b) => a - b)}`;
  }

  move(answer: string): Outcome {
    const guess = integers(read(answer))?.[0];
    if (guess === undefined || (guess === 0 && this.#rules === 'gem')) return unreadable('a guess such as \\boxed{5}');
    this.#last = guess;
    if (!this.#inRange(guess)) return invalid(`Your guess is not between ${this.min} and ${this.max}.`);
    if (this.#guesses.has(guess)) return invalid(`You have tried ${guess} before.`);
    this.#guesses.add(guess);
    if (guess === this.#secret) return won(`Right: it is ${guess}.`);
    return valid(`My number is ${guess > this.#secret ? 'lower' : 'higher'} than ${guess}.`);
  }

  /** How near the last guess came. */
  lastReward(): number {
    return this.#inRange(this.#last) ? 1 - Math.abs(this.#last - this.#secret) / (this.max - this.min) : 0;
  }

  /** The middle of what the hints have left: it looks at them alone, not at the number. */
  bisect(): number {
    let [low, high] = [this.min, this.max];
    for (const guess of this.#guesses) {
      if (guess > this.#secret) high = Math.min(high, guess - 1);
      else low = Math.max(low, guess + 1);
    }
    return Math.floor((low + high) / 2);
  }

  #inRange(guess: number): boolean {
    return guess >= this.min && guess <= this.max;
  }
}

const rules = z.enum(['gem', 'fixed']).default('gem');

export const guessTheNumber = defineGame<Parameters, GuessTheNumber>({
  name: 'GuessTheNumber',
  help: 'Find a number from hints: higher or lower.',
  parameters: z
    .strictObject({
      min: z.int().min(1).max(1_000_000),
      max: z.int().max(1_000_000),
      turns: z.int().min(1),
      rules,
    })
    .refine(({ min, max }) => max > min, 'max must be larger than min'),
  levels: { easy: { min: 1, max: 10, turns: 4 }, hard: { min: 1, max: 50, turns: 7 } },
  randomParameters: z.strictObject({ rules }),
  draw(random) {
    const min = random.randint(1, 10);
    const max = random.randint(min + 5, min + 50);
    return { min, max, turns: Math.ceil(Math.sqrt(max - min)) + 1 };
  },
  start: (parameters, random) => new GuessTheNumber(parameters, random),
  oracle: game => `\\boxed{${game.bisect()}}`,
  randomMove: (game, random) => `\\boxed{${random.randint(game.min, game.max)}}`,
});
