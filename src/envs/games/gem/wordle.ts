import { z } from 'zod';
import { boxed, SPACE } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { defineGame, invalid, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';
import { wordsOf } from './words.ts';

const read = boxed(`([a-zA-Z]+(?:${SPACE}+[a-zA-Z]+)*)`);
const spaces = new RegExp(`${SPACE}+`, 'gu');

interface Parameters {
  length: number;
  turns: number;
  /** `gem`: blanks between letters are dropped, and a tab or a line break there is a letter. `fixed`: all are dropped. */
  rules: 'gem' | 'fixed';
}

class Wordle implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly words: readonly string[];
  readonly #secret: string;
  readonly #rules: Parameters['rules'];
  /** Marks by guess, in the order of the guesses. */
  readonly #guesses = new Map<string, string>();
  /** Places that have been green. */
  readonly #found: boolean[];

  constructor({ length, turns, rules }: Parameters, random: PythonRandom) {
    this.turns = turns;
    this.words = wordsOf(length);
    this.#secret = random.choice(this.words);
    this.#rules = rules;
    this.#found = new Array<boolean>(length).fill(false);
    this.instructions = [
      `Wordle. Find a secret English word of ${length} letters in at most ${turns} turns.`,
      'Each letter of a guess is marked: G is at its right place, Y is in the word at another place, X is not in the word',
      'or no more often than marked.',
      `Write your guess in \\boxed{}, for example \\boxed{${random.choice(this.words)}}.`,
    ].join('\n');
  }

  view(): undefined {
    return undefined;
  }

  state(): string {
    const found = this.#found.map(place => (place ? 1 : 0)).join('');
    return `${this.#secret} ${found} ${[...this.#guesses.keys()].sort()}`;
  }

  move(answer: string): Outcome {
    const letters = read(answer)?.[0];
    if (letters === undefined) return unreadable(`a word such as \\boxed{${this.words[0]}}`);
    const guess = letters.toUpperCase().replace(this.#rules === 'gem' ? / /g : spaces, '');
    const { length } = this.#secret;
    if (guess.length !== length) return invalid(`The word has ${length} letters, your guess has ${guess.length}.`);
    if (this.#guesses.has(guess)) return invalid(`You have tried ${guess} before.`);
    const marks = mark(this.#secret, guess);
    this.#guesses.set(guess, marks);
    let reward = 0;
    for (const [place, sign] of [...marks].entries()) {
      if (sign !== 'G' || this.#found[place]) continue;
      this.#found[place] = true;
      reward += (1 / length) * 0.5;
    }
    if (guess === this.#secret) return won(`Right: the word is ${guess}.`, reward + 0.5);
    return valid(`${[...guess].join(' ')}\n${[...marks].join(' ')}`, reward);
  }

  /** Of the words that fit all marks, the one whose marks would tell most. It looks at the marks alone. */
  best(): string {
    const left = this.words.filter(word => [...this.#guesses].every(([guess, marks]) => mark(word, guess) === marks));
    return mostTelling(left, left, mark);
  }
}

/** Of the guesses, the first one whose answer would tell most about the words: that of the largest entropy. */
export function mostTelling<G>(
  guesses: readonly G[],
  words: readonly string[],
  answer: (word: string, guess: G) => string,
): G {
  const unknown = guesses.map(guess => {
    const sizes = new Map<string, number>();
    for (const told of words.map(word => answer(word, guess))) sizes.set(told, (sizes.get(told) ?? 0) + 1);
    return [...sizes.values()].reduce((sum, size) => sum + size * Math.log(size), 0);
  });
  return guesses[unknown.indexOf(Math.min(...unknown))]!;
}

/** Marks of a guess, a letter each. A letter of the word is used up by one mark, green before yellow, from the left. */
export function mark(secret: string, guess: string): string {
  const left = [...secret].filter((letter, i) => letter !== guess[i]);
  return [...guess]
    .map((letter, i) => {
      if (letter === secret[i]) return 'G';
      const place = left.indexOf(letter);
      if (place < 0) return 'X';
      left.splice(place, 1);
      return 'Y';
    })
    .join('');
}

const rules = z.enum(['gem', 'fixed']).default('gem');

export const wordle = defineGame<Parameters, Wordle>({
  name: 'Wordle',
  help: 'Find a word from marks: right place, wrong place, not in the word.',
  parameters: z.strictObject({ length: z.int().min(2).max(12), turns: z.int().min(1), rules }),
  levels: { easy: { length: 3, turns: 15 }, hard: { length: 5, turns: 25 } },
  randomParameters: z.strictObject({ rules }),
  draw(random) {
    const length = random.randint(3, 5);
    return { length, turns: 5 * length };
  },
  start: (parameters, random) => new Wordle(parameters, random),
  oracle: game => `\\boxed{${game.best()}}`,
  randomMove: (game, random) => `\\boxed{${random.choice(game.words)}}`,
});
