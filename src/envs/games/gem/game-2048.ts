import { z } from 'zod';
import { boxed } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { defineGame, invalid, lost, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';

const SIDE = 4;
const MOVES = ['up', 'down', 'left', 'right'] as const;
type Direction = (typeof MOVES)[number];
const read = boxed('([uU][pP]|[dD][oO][wW][nN]|[lL][eE][fF][tT]|[rR][iI][gG][hH][tT])');

interface Parameters {
  target: number;
  turns: number;
}

class Game2048 implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly #target: number;
  readonly #random: PythonRandom;
  /** Largest tile at the start, and so far; the target at most. */
  readonly #first: number;
  #best: number;
  #board: readonly number[];

  constructor({ target, turns }: Parameters, random: PythonRandom) {
    this.#target = target;
    this.turns = turns;
    this.#random = random;
    this.#board = withTile(withTile(new Array<number>(SIDE * SIDE).fill(0), random), random);
    this.#first = Math.max(...this.#board);
    this.#best = this.#first;
    this.instructions = [
      `2048. Make a tile of ${target} in at most ${turns} turns.`,
      'A move slides all tiles to one side; two equal tiles that meet become one of twice the value, once in a move.',
      'After each move a new tile, 2 or sometimes 4, appears in an empty place. The game is lost when nothing can move.',
      `Write the move in \\boxed{}: up, down, left or right, for example \\boxed{${random.choice(MOVES)}}.`,
    ].join('\n');
  }

  view(): string {
    return this.#rows()
      .map(row => row.map(tile => (tile === 0 ? '.' : `${tile}`).padStart(4)).join(' '))
      .join('\n');
  }

  state(): string {
    return this.#rows()
      .map(row => row.join(' '))
      .join('/');
  }

  move(answer: string): Outcome {
    const move = read(answer)?.[0]?.toLowerCase() as Direction | undefined;
    if (move === undefined) return unreadable('\\boxed{up}, \\boxed{down}, \\boxed{left} or \\boxed{right}');
    const moved = shift(this.#board, move);
    if (same(moved, this.#board)) return invalid(`Nothing moves ${move}.`);
    const largest = Math.min(Math.max(...moved), this.#target);
    const reward =
      largest > this.#best
        ? (Math.log2(largest) - Math.log2(this.#best)) / (Math.log2(this.#target) - Math.log2(this.#first))
        : 0;
    this.#best = Math.max(this.#best, largest);
    this.#board = withTile(moved, this.#random);
    if (this.#best >= this.#target) return won(`The board has a tile of ${this.#target}.`, reward);
    if (MOVES.every(next => same(shift(this.#board, next), this.#board))) return lost('Nothing can move.', reward);
    return valid(`The tiles moved ${move}.`, reward);
  }

  /** The move after which most places are empty, looking two moves ahead, new tiles left out; large tiles go down left. */
  greedy(): Direction {
    const value = (board: readonly number[], depth: number): number => {
      const now = worth(board);
      if (depth === 0) return now;
      const next = MOVES.map(move => shift(board, move)).filter(moved => !same(moved, board));
      return now + Math.max(-1000, ...next.map(moved => value(moved, depth - 1)));
    };
    const legal = MOVES.filter(move => !same(shift(this.#board, move), this.#board));
    const values = legal.map(move => value(shift(this.#board, move), 2));
    return legal[values.indexOf(Math.max(...values))] ?? 'down';
  }

  #rows(): number[][] {
    return Array.from({ length: SIDE }, (_, row) => this.#board.slice(row * SIDE, (row + 1) * SIDE));
  }
}

/** Empty places, and a pull of the large tiles into the lower left corner. */
function worth(board: readonly number[]): number {
  let pull = 0;
  board.forEach((tile, i) => {
    if (tile > 0) pull += tile * (Math.floor(i / SIDE) - (i % SIDE));
  });
  return board.filter(tile => tile === 0).length + pull / Math.max(...board);
}

const same = (a: readonly number[], b: readonly number[]): boolean => a.every((tile, i) => tile === b[i]);

/** A new tile in an empty place: 2, or 4 one time in ten. */
function withTile(board: readonly number[], random: PythonRandom): number[] {
  const empty = board.flatMap((tile, i) => (tile === 0 ? [i] : []));
  const place = random.choice(empty);
  return board.with(place, random.random() < 0.9 ? 2 : 4);
}

/** The board after a move, before the new tile. */
function shift(board: readonly number[], move: Direction): number[] {
  const result = new Array<number>(SIDE * SIDE).fill(0);
  for (let line = 0; line < SIDE; line++) {
    // The line's places from the side the tiles go to.
    const places = Array.from({ length: SIDE }, (_, i) => {
      const at = move === 'up' || move === 'left' ? i : SIDE - 1 - i;
      return move === 'left' || move === 'right' ? line * SIDE + at : at * SIDE + line;
    });
    const tiles = places.map(place => board[place]!).filter(tile => tile > 0);
    let filled = 0;
    for (let i = 0; i < tiles.length; i++) {
      const merges = tiles[i] === tiles[i + 1];
      result[places[filled++]!] = merges ? tiles[i]! * 2 : tiles[i]!;
      if (merges) i += 1;
    }
  }
  return result;
}

export const game2048 = defineGame<Parameters, Game2048>({
  name: 'Game2048',
  help: 'Slide and merge tiles until one has the target value.',
  parameters: z.strictObject({
    target: z
      .int()
      .min(8)
      .max(65536)
      .refine(target => Number.isInteger(Math.log2(target)), 'target must be a power of two'),
    turns: z.int().min(1),
  }),
  levels: {
    easy: { target: 64, turns: 50 },
    hard: { target: 512, turns: 50 },
    'extreme-hard': { target: 2048, turns: 100 },
  },
  randomParameters: z.strictObject({}),
  draw: random =>
    random.choice([
      { target: 16, turns: 20 },
      { target: 32, turns: 30 },
      { target: 64, turns: 50 },
    ]),
  start: (parameters, random) => new Game2048(parameters, random),
  oracle: game => `\\boxed{${game.greedy()}}`,
  randomMove: (_game, random) => `\\boxed{${random.choice(MOVES)}}`,
});
