import { BACK, gapAfter, SLIDES, type Slide } from './sliding.ts';

/**
 * Shortest solutions of the sliding puzzle: IDA* (Korf 1985) with the walking distance of K. Takahashi as the bound: the
 * moves that bring every tile into its row, plus those that bring every tile into its column, each counted exactly where
 * only rows, or only columns, matter.
 */

/** How many tiles of each row belong to which, and the gap's row, as an automaton: what a move makes of it. */
interface Walks {
  /** [n] moves to the goal. */
  readonly distance: Uint8Array;
  /** [n * 2 * side] the state after the gap has gone down (0) or up (1) a row past a tile that belongs to a row; -1: none. */
  readonly next: Int32Array;
  /** The state of a board: the lines that the tiles of each line belong to, and the gap's. */
  find(lines: readonly (readonly number[])[], gap: number): number;
}

const built = new Map<number, Walks>();

/** For sides up to 4: 24 964 states there. */
function walksOf(side: number): Walks {
  const known = built.get(side);
  if (known !== undefined) return known;
  const index = new Map<string, number>();
  const states: { readonly counts: readonly number[]; readonly gap: number }[] = [];
  const distance: number[] = [];
  const next: number[] = [];
  const numberOf = (counts: readonly number[], gap: number, moves: number): number => {
    const key = `${counts}|${gap}`;
    const found = index.get(key);
    if (found !== undefined) return found;
    index.set(key, states.length);
    distance.push(moves);
    return states.push({ counts, gap }) - 1;
  };
  // counts[line * side + goal]: tiles of a line that belong to another.
  const goal = Array.from({ length: side * side }, (_, i) => (i % (side + 1) === 0 ? side : 0));
  goal[side * side - 1] = side - 1;
  numberOf(goal, side - 1, 0);
  for (let state = 0; state < states.length; state++) {
    const { counts, gap } = states[state]!;
    for (const line of [gap + 1, gap - 1]) {
      for (let belongs = 0; belongs < side; belongs++) {
        const count = line >= 0 && line < side ? counts[line * side + belongs]! : 0;
        if (count === 0) {
          next.push(-1);
          continue;
        }
        const moved = [...counts];
        moved[line * side + belongs] = count - 1;
        moved[gap * side + belongs] = moved[gap * side + belongs]! + 1;
        next.push(numberOf(moved, line, distance[state]! + 1));
      }
    }
  }
  const find: Walks['find'] = (lines, gap) => {
    const counts = new Array<number>(side * side).fill(0);
    for (const [line, goals] of lines.entries()) for (const one of goals) counts[line * side + one]! += 1;
    return index.get(`${counts}|${gap}`)!;
  };
  const walks = { distance: Uint8Array.from(distance), next: Int32Array.from(next), find };
  built.set(side, walks);
  return walks;
}

/**
 * A shortest solution of at most `limit` moves; undefined if there is none, or none was found among `maxNodes` boards.
 * @param side at most 4
 */
export function shortest(
  side: number,
  start: readonly number[],
  limit: number,
  maxNodes = 4_000_000,
): Slide[] | undefined {
  const { distance, next, find } = walksOf(side);
  const tiles = Uint8Array.from(start);
  const row = (place: number) => Math.floor(place / side);
  const lines = (lineOf: (place: number) => number) =>
    Array.from({ length: side }, (_, line) =>
      start.flatMap((tile, place) => (tile > 0 && lineOf(place) === line ? [lineOf(tile - 1)] : [])),
    );
  const gap = tiles.indexOf(0);
  const rows = find(lines(row), row(gap));
  const columns = find(
    lines(place => place % side),
    gap % side,
  );
  // [place * 4 + move] where the gap goes, -1 for no move; [tile] the row and the column that a tile belongs to.
  const targets = Int8Array.from({ length: side * side * 4 }, (_, i) => gapAfter(side, i >> 2, SLIDES[i & 3]!) ?? -1);
  const homeRow = Int8Array.from({ length: side * side }, (_, tile) => (tile === 0 ? 0 : row(tile - 1)));
  const homeColumn = Int8Array.from({ length: side * side }, (_, tile) => (tile === 0 ? 0 : (tile - 1) % side));
  const back = SLIDES.map(move => SLIDES.indexOf(BACK[move]));
  const path: number[] = [];
  let nodes = 0;

  /** Goes on from a board whose bound is at most `left`; true when it is solved. `at` is its gap, `last` the way back. */
  const search = (at: number, byRow: number, byColumn: number, left: number, last: number): boolean => {
    if (left === 0) return true;
    nodes += 1;
    if (nodes > maxNodes) return false;
    for (let move = 0; move < SLIDES.length; move++) {
      const target = targets[at * 4 + move]!;
      if (target < 0 || move === last) continue;
      const tile = tiles[target]!;
      // Up and left take the gap to a later line.
      const step = move % 2 === 0 ? 0 : side;
      const isVertical = move < 2;
      const r = isVertical ? next[byRow * 2 * side + step + homeRow[tile]!]! : byRow;
      const c = isVertical ? byColumn : next[byColumn * 2 * side + step + homeColumn[tile]!]!;
      if (distance[r]! + distance[c]! >= left) continue;
      tiles[at] = tile;
      tiles[target] = 0;
      path.push(move);
      if (search(target, r, c, left - 1, back[move]!)) return true;
      path.pop();
      tiles[target] = tile;
      tiles[at] = 0;
    }
    return false;
  };

  // Each move changes the parity of the gap's place, so that a solution has the parity of the bound.
  for (let depth = distance[rows]! + distance[columns]!; depth <= limit && nodes <= maxNodes; depth += 2) {
    if (search(gap, rows, columns, depth, -1)) return path.map(move => SLIDES[move]!);
  }
  return undefined;
}
