import { z } from 'zod';
import { boxed, DIGIT, integers, SPACE } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { drawSudoku } from './sudoku-grid.ts';
import { defineGame, invalid, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';

const read = boxed(`(${DIGIT}+)${SPACE}(${DIGIT}+)${SPACE}(${DIGIT}+)`);

interface Parameters {
  scale: number;
  /** Cells that are tried to be emptied; a cell that the one solution depends on stays. */
  removals: number;
  turns: number;
}

class Sudoku implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly scale: number;
  readonly #solution: readonly number[];
  readonly #board: number[];
  readonly #emptied: number;

  constructor({ scale, removals, turns }: Parameters, random: PythonRandom) {
    this.scale = scale;
    this.turns = turns;
    const { solution, puzzle } = drawSudoku(scale, removals, random);
    this.#solution = solution;
    this.#board = puzzle;
    this.#emptied = puzzle.filter(digit => digit === 0).length;
    const block = Math.sqrt(scale);
    this.instructions = [
      `Sudoku. Fill the empty cells (.) of the board with numbers from 1 to ${scale} in at most ${turns} turns, so that`,
      `every row, every column and every block of ${block} by ${block} cells has each number once. There is one solution;`,
      'a number that is not of it is not set.',
      'Write row, column and number, all counted from 1, in \\boxed{}, for example \\boxed{1 1 3}.',
    ].join('\n');
  }

  view(): string {
    const block = Math.sqrt(this.scale);
    /** Cells with a bar between blocks. */
    const line = (label: string, cells: readonly (string | number)[], bar: string) =>
      `${label}${cells.map((cell, i) => `${i > 0 && i % block === 0 ? ` ${bar}` : ''} ${cell}`).join('')}`;
    const columns = Array.from({ length: this.scale }, (_, i) => i + 1);
    return [
      line('  ', columns, ' '),
      ...this.#rows(this.#board).flatMap((row, i) => [
        ...(i > 0 && i % block === 0
          ? [
              line(
                '  ',
                columns.map(() => '-'),
                '+',
              ),
            ]
          : []),
        line(
          `${i + 1}`.padStart(2),
          row.map(digit => digit || '.'),
          '|',
        ),
      ]),
    ].join('\n');
  }

  state(): string {
    return [this.#board, this.#solution]
      .map(grid =>
        this.#rows(grid)
          .map(row => row.join(''))
          .join('/'),
      )
      .join(' ');
  }

  move(answer: string): Outcome {
    const numbers = integers(read(answer));
    if (numbers === undefined) return unreadable('row, column and number such as \\boxed{1 1 3}');
    if (numbers.some(number => number < 1 || number > this.scale)) {
      return invalid(`Row, column and number are from 1 to ${this.scale}.`);
    }
    const [row, col, digit] = numbers as [number, number, number];
    const cell = (row - 1) * this.scale + col - 1;
    if (this.#board[cell] !== 0) return invalid(`The cell in row ${row}, column ${col} is not empty.`);
    if (digit !== this.#solution[cell]) return invalid(`${digit} is wrong in row ${row}, column ${col}.`);
    this.#board[cell] = digit;
    const reward = 1 / this.#emptied;
    if (!this.#board.includes(0)) return won('The board is complete.', reward);
    return valid(`${digit} is right in row ${row}, column ${col}.`, reward);
  }

  /** An empty cell and its number. */
  next(): readonly [row: number, col: number, digit: number] {
    const cell = Math.max(0, this.#board.indexOf(0));
    return [Math.floor(cell / this.scale) + 1, (cell % this.scale) + 1, this.#solution[cell]!];
  }

  #rows(grid: readonly number[]): number[][] {
    return Array.from({ length: this.scale }, (_, row) => grid.slice(row * this.scale, (row + 1) * this.scale));
  }
}

export const sudoku = defineGame<Parameters, Sudoku>({
  name: 'Sudoku',
  help: 'Fill a grid so that rows, columns and blocks have each number once.',
  parameters: z
    .strictObject({
      scale: z.union([z.literal(4), z.literal(9)]),
      removals: z.int().min(1),
      turns: z.int().min(1),
    })
    .refine(
      ({ scale, removals }) => removals <= Math.min(scale * scale - 1, 60),
      'removals must leave a cell, at most 60',
    ),
  levels: { easy: { scale: 4, removals: 10, turns: 15 }, hard: { scale: 9, removals: 50, turns: 50 } },
  randomParameters: z.strictObject({}),
  draw: random =>
    random.choice([
      { scale: 4, removals: 10, turns: 15 },
      { scale: 9, removals: 50, turns: 50 },
    ]),
  start: (parameters, random) => new Sudoku(parameters, random),
  oracle: game => `\\boxed{${game.next().join(' ')}}`,
  randomMove: (game, random) =>
    `\\boxed{${[random.randint(1, game.scale), random.randint(1, game.scale), random.randint(1, game.scale)].join(' ')}}`,
});
