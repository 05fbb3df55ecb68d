import { z } from 'zod';
import { boxed } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { defineGame, invalid, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';
import { mostTelling } from './wordle.ts';
import { wordsOf } from './words.ts';

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
// Whatever the case, as GEM reads it: Python then takes İ and ı, too, for letters of a to z.
const read = boxed('([a-zA-Z\u0130\u0131]+)', 'iu');

interface Parameters {
  length: number;
  turns: number;
  /** `gem`: only the word as a whole wins, also when all its letters are shown. `fixed`: its last letter wins, too. */
  rules: 'gem' | 'fixed';
}

class Hangman implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly words: readonly string[];
  readonly #secret: string;
  readonly #rules: Parameters['rules'];
  readonly #letters = new Set<string>();
  readonly #tried = new Set<string>();

  constructor({ length, turns, rules }: Parameters, random: PythonRandom) {
    this.turns = turns;
    this.words = wordsOf(length);
    this.#secret = random.choice(this.words);
    this.#rules = rules;
    const [word, letter] = [random.choice(this.words), random.choice(LETTERS)];
    this.instructions = [
      `Hangman. Find a secret English word of ${length} letters in at most ${turns} turns.`,
      'Guess a letter, and its places are shown; _ is a letter not found yet. Or guess the word.',
      rules === 'gem'
        ? 'You win with the word, also when all its letters are shown.'
        : 'You win with the word or its last letter.',
      `Write a letter or a word in \\boxed{}, for example \\boxed{${letter}} or \\boxed{${word}}.`,
    ].join('\n');
  }

  view(): string {
    return [...this.#shown()].join(' ');
  }

  state(): string {
    return `${this.#secret} ${this.#shown()} ${[...this.#letters].sort().join('')}`;
  }

  move(answer: string): Outcome {
    const guess = read(answer)?.[0]?.toUpperCase();
    if (guess === undefined) return unreadable('a letter such as \\boxed{E} or a word');
    const { length } = this.#secret;
    if (guess.length > 1) {
      const hidden = this.#hidden();
      if (guess === this.#secret) return won(`Right: the word is ${guess}.`, (hidden / length) * 0.5 + 0.5);
      if (guess.length !== length) return invalid(`The word has ${length} letters, your guess has ${guess.length}.`);
      this.#tried.add(guess);
      return valid(`The word is not ${guess}.`);
    }
    if (this.#letters.has(guess)) return invalid(`You have tried ${guess} before.`);
    this.#letters.add(guess);
    const places = this.#secret.split(guess).length - 1;
    if (places === 0) return valid(`${guess} is not in the word.`);
    const reward = (places / length) * 0.5;
    if (this.#rules === 'fixed' && this.#hidden() === 0)
      return won(`Right: the word is ${this.#secret}.`, reward + 0.5);
    return valid(`${guess} is in the word.`, reward);
  }

  /** The word where only one fits, else the letter that tells most. It looks at what is shown alone. */
  best(): string {
    const shown = this.#shown();
    const left = this.words.filter(word => !this.#tried.has(word) && reveal(word, this.#letters) === shown);
    if (left.length === 1) return left[0]!;
    const open = [...LETTERS].filter(letter => !this.#letters.has(letter));
    return mostTelling(open, left, (word, letter) => reveal(word, new Set(letter)));
  }

  #shown(): string {
    return reveal(this.#secret, this.#letters);
  }

  #hidden(): number {
    return this.#shown().split('_').length - 1;
  }
}

const reveal = (word: string, letters: ReadonlySet<string>): string =>
  [...word].map(letter => (letters.has(letter) ? letter : '_')).join('');

const rules = z.enum(['gem', 'fixed']).default('gem');

export const hangman = defineGame<Parameters, Hangman>({
  name: 'Hangman',
  help: 'Find a word, letter by letter.',
  // A guess of one letter is always a letter.
  parameters: z.strictObject({ length: z.int().min(2).max(12), turns: z.int().min(1), rules }),
  levels: { easy: { length: 3, turns: 10 }, hard: { length: 7, turns: 20 } },
  randomParameters: z.strictObject({ rules }),
  draw: random =>
    random.choice([
      { length: 3, turns: 10 },
      { length: 5, turns: 15 },
      { length: 7, turns: 20 },
    ]),
  start: (parameters, random) => new Hangman(parameters, random),
  oracle: game => `\\boxed{${game.best()}}`,
  randomMove: (game, random) => `\\boxed{${random.choice(random.random() < 0.5 ? game.words : [...LETTERS])}}`,
});
