import { z } from 'zod';
import { boxed } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { BACK, gapAfter, SLIDES, type Slide, slide, solve } from './sliding.ts';
import { defineGame, invalid, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';
import { shortest } from './walking-distance.ts';

const READERS = {
  gem: boxed('(up|down|left|right)'),
  fixed: boxed('([uU][pP]|[dD][oO][wW][nN]|[lL][eE][fF][tT]|[rR][iI][gG][hH][tT])'),
};
const SHUFFLE_MOVES = 100;

interface Parameters {
  side: number;
  turns: number;
  /** `gem`: moves are written in small letters, and any other spelling ends the episode. `fixed`: in letters of any case. */
  rules: 'gem' | 'fixed';
}

class FifteenPuzzle implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly side: number;
  readonly #rules: Parameters['rules'];
  /** Row-major; 0 is the gap. */
  #tiles: readonly number[];
  #plan: { readonly from: string; readonly move: Slide }[] = [];
  /** No plan was found: the search is not worth another one at every move. */
  #gaveUp = false;

  constructor({ side, turns, rules }: Parameters, random: PythonRandom) {
    this.side = side;
    this.turns = turns;
    this.#rules = rules;
    this.#tiles = Array.from({ length: side * side }, (_, i) => (i + 1) % (side * side));
    let last: Slide | undefined;
    for (let i = 0; i < SHUFFLE_MOVES; i++) {
      const gap = this.#tiles.indexOf(0);
      const back = last && BACK[last];
      last = random.choice(SLIDES.filter(move => move !== back && gapAfter(side, gap, move) !== undefined));
      this.#slide(last);
    }
    this.instructions = [
      `Sliding puzzle. Bring the tiles 1 to ${side * side - 1} in order, row by row, with the gap (__) in the last place,`,
      `in at most ${turns} turns. A move slides the tile beside the gap into it: up slides the tile below the gap up,`,
      'down the one above it down, left the one on its right to the left, right the one on its left to the right.',
      'Write the move in \\boxed{}, for example \\boxed{up}.',
    ].join('\n');
  }

  view(): string {
    return rows(this.side, this.#tiles)
      .map(row => row.map(tile => (tile === 0 ? '__' : `${tile}`.padStart(2))).join(' '))
      .join('\n');
  }

  state(): string {
    return describe(this.side, this.#tiles);
  }

  move(answer: string): Outcome {
    const move = READERS[this.#rules](answer)?.[0]?.toLowerCase() as Slide | undefined;
    if (move === undefined) return unreadable('\\boxed{up}, \\boxed{down}, \\boxed{left} or \\boxed{right}');
    if (!this.#slide(move)) return invalid(`No tile can move ${move}.`);
    return this.#right() === this.#tiles.length ? won('The puzzle is solved.') : valid(`A tile moved ${move}.`);
  }

  /** The share of the places, the gap's included, that are right; added up in floating point as GEM does. */
  lastReward(reward: number): number {
    let share = 0;
    for (let i = this.#right(); i > 0; i--) share += 1 / this.#tiles.length;
    return reward + share;
  }

  /**
   * The next move of a shortest solution, of any short one where that takes too long or has too many moves; looked for
   * once, and again only after other moves.
   */
  next(): Slide {
    if (!this.#gaveUp && this.#plan.at(0)?.from !== this.state()) {
      let tiles = this.#tiles;
      const found = this.side <= 4 ? shortest(this.side, tiles, this.turns) : undefined;
      this.#plan = (found ?? solve(this.side, tiles)).map(move => {
        const from = describe(this.side, tiles);
        tiles = slide(this.side, tiles, move)!;
        return { from, move };
      });
      this.#gaveUp = this.#plan.length === 0;
    }
    return this.#plan.shift()?.move ?? SLIDES.find(move => slide(this.side, this.#tiles, move) !== undefined)!;
  }

  #slide(move: Slide): boolean {
    const moved = slide(this.side, this.#tiles, move);
    if (moved === undefined) return false;
    this.#tiles = moved;
    return true;
  }

  #right(): number {
    return this.#tiles.filter((tile, i) => tile === (i + 1) % this.#tiles.length).length;
  }
}

const rows = (side: number, tiles: readonly number[]): number[][] =>
  Array.from({ length: side }, (_, row) => tiles.slice(row * side, (row + 1) * side));

const describe = (side: number, tiles: readonly number[]): string =>
  rows(side, tiles)
    .map(row => row.join(' '))
    .join('/');

export const fifteenPuzzle = defineGame<Parameters, FifteenPuzzle>({
  name: 'FifteenPuzzle',
  help: 'Slide numbered tiles into order.',
  parameters: z.strictObject({
    side: z.int().min(2).max(9),
    turns: z.int().min(1),
    rules: z.enum(['gem', 'fixed']).default('gem'),
  }),
  levels: { easy: { side: 2, turns: 10 }, hard: { side: 4, turns: 50 } },
  randomParameters: z.strictObject({
    /** `gem` is refused: there the puzzle of random size crashes when it is made. `fixed` draws a size. */
    rules: z
      .enum(['gem', 'fixed'])
      .default('fixed')
      .refine(rules => rules === 'fixed', 'GEM cannot make a puzzle of random size (it crashes); use fixed'),
  }),
  draw: random =>
    random.choice([
      { side: 2, turns: 10 },
      { side: 3, turns: 20 },
      { side: 4, turns: 50 },
    ]),
  start: (parameters, random) => new FifteenPuzzle(parameters, random),
  oracle: game => `\\boxed{${game.next()}}`,
  randomMove: (_game, random) => `\\boxed{${random.choice(SLIDES)}}`,
});
