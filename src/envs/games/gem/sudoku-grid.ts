import type { PythonRandom } from './python-random.ts';

/** Sudoku grids of scale * scale cells, row-major; 0 is empty. */

/** The cells of every row, column and block that a cell must differ from. */
function units(scale: number): readonly (readonly number[])[] {
  const block = Math.sqrt(scale);
  const place = (cell: number) => [Math.floor(cell / scale), cell % scale] as const;
  const cells = Array.from({ length: scale * scale }, (_, i) => i);
  return cells.map(cell => {
    const [row, col] = place(cell);
    return cells.filter(other => {
      const [r, c] = place(other);
      const inBlock =
        Math.floor(r / block) === Math.floor(row / block) && Math.floor(c / block) === Math.floor(col / block);
      return other !== cell && (r === row || c === col || inBlock);
    });
  });
}

/**
 * A full grid and a puzzle of it with one solution, drawn as GEM draws them: cells are filled in order, each with digits in an
 * order drawn anew when it is reached; then `removals` cells are tried in an order drawn, and a cell without which the puzzle
 * has two solutions stays.
 */
export function drawSudoku(
  scale: number,
  removals: number,
  random: PythonRandom,
): { readonly solution: readonly number[]; readonly puzzle: number[] } {
  const peers = units(scale);
  const fits = (grid: readonly number[], cell: number, digit: number) =>
    peers[cell]!.every(other => grid[other] !== digit);
  const solution = new Array<number>(scale * scale).fill(0);
  const fill = (cell: number): boolean => {
    if (cell === solution.length) return true;
    const digits = Array.from({ length: scale }, (_, i) => i + 1);
    random.shuffle(digits);
    for (const digit of digits) {
      if (!fits(solution, cell, digit)) continue;
      solution[cell] = digit;
      if (fill(cell + 1)) return true;
      solution[cell] = 0;
    }
    return false;
  };
  fill(0);

  const puzzle = [...solution];
  const cells = puzzle.map((_, i) => i);
  random.shuffle(cells);
  for (const cell of cells.slice(cells.length - removals).reverse()) {
    puzzle[cell] = 0;
    if (countSolutions(puzzle, peers, 2) !== 1) puzzle[cell] = solution[cell]!;
  }
  return { solution, puzzle };
}

/** Solutions of a puzzle, counted up to `limit`. */
function countSolutions(puzzle: readonly number[], peers: readonly (readonly number[])[], limit: number): number {
  const scale = Math.sqrt(puzzle.length);
  const grid = [...puzzle];
  const search = (): number => {
    // The empty cell with the fewest digits left: the count is the same in any order, and soonest in this one.
    let best = -1;
    let choices: number[] = [];
    for (let cell = 0; cell < grid.length; cell++) {
      if (grid[cell] !== 0) continue;
      let used = 0;
      for (const other of peers[cell]!) used |= 1 << grid[other]!;
      const left: number[] = [];
      for (let digit = 1; digit <= scale; digit++) if (!(used & (1 << digit))) left.push(digit);
      if (best >= 0 && left.length >= choices.length) continue;
      [best, choices] = [cell, left];
      if (left.length <= 1) break;
    }
    if (best < 0) return 1;
    let found = 0;
    for (const digit of choices) {
      grid[best] = digit;
      found += search();
      if (found >= limit) break;
    }
    grid[best] = 0;
    return found;
  };
  return search();
}
