import { z } from 'zod';
import { boxed, DIGIT, integers, SPACE } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { defineGame, invalid, lost, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';

const read = boxed(`([a-zA-Z]+)${SPACE}(${DIGIT}+)${SPACE}(${DIGIT}+)`);

interface Parameters {
  rows: number;
  cols: number;
  mines: number;
  turns: number;
  /**
   * `gem`: the board is won when every other cell is revealed and every mine flagged, and that is looked at after a reveal
   * alone, so that a board cleared without flags is never won. `fixed`: won when every other cell is revealed.
   */
  rules: 'gem' | 'fixed';
}

interface Cell {
  readonly row: number;
  readonly col: number;
  mine: boolean;
  /** Mines among the neighbours. */
  near: number;
  revealed: boolean;
  flagged: boolean;
}

class Minesweeper implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly rows: number;
  readonly cols: number;
  /** Row-major. */
  readonly cells: readonly Cell[];
  readonly #mines: number;
  readonly #rules: Parameters['rules'];
  readonly #random: PythonRandom;
  #placed = false;

  constructor({ rows, cols, mines, turns, rules }: Parameters, random: PythonRandom) {
    this.rows = rows;
    this.cols = cols;
    this.turns = turns;
    this.#mines = mines;
    this.#rules = rules;
    this.#random = random;
    this.cells = Array.from({ length: rows * cols }, (_, i) => ({
      row: Math.floor(i / cols),
      col: i % cols,
      mine: false,
      near: 0,
      revealed: false,
      flagged: false,
    }));
    const [reveal, flag] = [this.draw(random), this.draw(random)];
    this.instructions = [
      `Minesweeper, ${rows} rows and ${cols} columns, counted from 0, with ${mines} mines, in at most ${turns} turns.`,
      'Reveal every cell without a mine. A number tells how many of the eight neighbours are mines, a dot (.) is a cell',
      'not yet revealed, F a flag. The first reveal is safe. A flag marks a mine; setting it again takes it away.',
      rules === 'gem'
        ? 'You win with the reveal after which every safe cell is revealed and every mine has a flag.'
        : 'You win when every safe cell is revealed.',
      `Write the move, row and column in \\boxed{}: \\boxed{reveal ${reveal.row} ${reveal.col}} or ` +
        `\\boxed{flag ${flag.row} ${flag.col}}.`,
    ].join('\n');
  }

  view(): string {
    const line = (label: string, cells: readonly string[]) => [label, ...cells].map(text => text.padStart(2)).join(' ');
    const columns = Array.from({ length: this.cols }, (_, col) => `${col}`);
    return [line('', columns), ...this.#shown().map((row, i) => line(`${i}`, [...row]))].join('\n');
  }

  state(): string {
    return `${this.#shown().join('/')} ${this.#lines(cell => (cell.mine ? '*' : '.')).join('/')}`;
  }

  move(answer: string): Outcome {
    const groups = read(answer);
    const [row, col] = integers(groups?.slice(1)) ?? [];
    if (row === undefined || col === undefined) return unreadable('a move such as \\boxed{reveal 0 0}');
    const cell = row < this.rows && col < this.cols ? this.cells[row * this.cols + col] : undefined;
    if (cell === undefined) return invalid('There is no such cell on the board.');
    switch (groups![0]!.toLowerCase()) {
      case 'reveal':
        return this.#reveal(cell);
      case 'flag':
        if (cell.revealed) return invalid(`Cell ${row} ${col} is revealed already.`);
        cell.flagged = !cell.flagged;
        return valid(`The flag on cell ${row} ${col} was ${cell.flagged ? 'set' : 'taken away'}.`);
      default:
        return invalid('The moves are reveal and flag.');
    }
  }

  #reveal(cell: Cell): Outcome {
    // Before the cell is looked at, as GEM does: also when it turns out to be flagged.
    if (!this.#placed) this.#placeMines(cell);
    const name = `${cell.row} ${cell.col}`;
    if (cell.mine) return lost(`Cell ${name} was a mine.`);
    if (cell.revealed || cell.flagged)
      return invalid(`Cell ${name} is ${cell.revealed ? 'revealed' : 'flagged'} already.`);
    const reward = this.#open(cell) / (this.cells.length - this.#mines);
    if (this.#cleared()) return won('The board is cleared.', reward);
    return valid(`Cell ${name} was safe.`, reward);
  }

  #cleared(): boolean {
    return this.cells.every(cell => (cell.mine ? this.#rules === 'fixed' || cell.flagged : cell.revealed));
  }

  /** Draws places until enough are new and not beside the first cell. */
  #placeMines(first: Cell): void {
    this.#placed = true;
    for (let left = this.#mines; left > 0; ) {
      const cell = this.draw(this.#random);
      if (cell.mine || (Math.abs(cell.row - first.row) <= 1 && Math.abs(cell.col - first.col) <= 1)) continue;
      cell.mine = true;
      for (const neighbour of this.#around(cell)) neighbour.near += 1;
      left -= 1;
    }
  }

  /** Reveals a cell, and around every cell without mines near it. How many. */
  #open(first: Cell): number {
    first.revealed = true;
    const opened = [first];
    for (const cell of opened) {
      if (cell.near > 0) continue;
      for (const neighbour of this.#around(cell)) {
        if (neighbour.revealed || neighbour.flagged) continue;
        neighbour.revealed = true;
        opened.push(neighbour);
      }
    }
    return opened.length;
  }

  #around({ row, col }: Cell): Cell[] {
    const found: Cell[] = [];
    for (let r = Math.max(0, row - 1); r <= Math.min(this.rows - 1, row + 1); r++) {
      for (let c = Math.max(0, col - 1); c <= Math.min(this.cols - 1, col + 1); c++) {
        if (r !== row || c !== col) found.push(this.cells[r * this.cols + c]!);
      }
    }
    return found;
  }

  draw(random: PythonRandom): Cell {
    const row = random.randint(0, this.rows - 1);
    return this.cells[row * this.cols + random.randint(0, this.cols - 1)]!;
  }

  #shown(): string[] {
    return this.#lines(cell => (cell.revealed ? `${cell.near}` : cell.flagged ? 'F' : '.'));
  }

  #lines(sign: (cell: Cell) => string): string[] {
    const signs = this.cells.map(sign).join('');
    return Array.from({ length: this.rows }, (_, row) => signs.slice(row * this.cols, (row + 1) * this.cols));
  }
}

const rules = z.enum(['gem', 'fixed']).default('gem');

export const minesweeper = defineGame<Parameters, Minesweeper>({
  name: 'Minesweeper',
  help: 'Reveal every cell that is not a mine.',
  parameters: z
    .strictObject({
      rows: z.int().min(1).max(50),
      cols: z.int().min(1).max(50),
      mines: z.int().min(1),
      turns: z.int().min(1),
      rules,
    })
    .refine(
      ({ rows, cols, mines }) => mines <= rows * cols - Math.min(rows, 3) * Math.min(cols, 3),
      'mines must fit beside the first cell and its neighbours',
    ),
  levels: { easy: { rows: 5, cols: 5, mines: 5, turns: 25 }, hard: { rows: 8, cols: 8, mines: 12, turns: 64 } },
  randomParameters: z.strictObject({ rules }),
  draw(random) {
    const n = random.randint(5, 8);
    return { rows: n, cols: n, mines: Math.floor((n * n) / 5), turns: n * n };
  },
  start: (parameters, random) => new Minesweeper(parameters, random),
  oracle(game) {
    // All mines are flagged before the last reveal, so that the board is won by GEM's rules too.
    const mine = game.cells.find(cell => cell.mine && !cell.flagged);
    const cell = mine ?? game.cells.find(({ mine, revealed }) => !mine && !revealed) ?? game.cells[0]!;
    return `\\boxed{${mine === undefined ? 'reveal' : 'flag'} ${cell.row} ${cell.col}}`;
  },
  randomMove(game, random) {
    const { row, col } = game.draw(random);
    return `\\boxed{reveal ${row} ${col}}`;
  },
});
