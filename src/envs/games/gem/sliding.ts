/** The sliding puzzle: boards of side * side tiles, row-major, 0 for the gap. */

/** Where the gap goes when a tile moves: the tile below the gap moves up, the gap down. Drawn from in this order. */
const GAP = { up: [1, 0], down: [-1, 0], left: [0, 1], right: [0, -1] } as const;
export type Slide = keyof typeof GAP;
export const SLIDES: readonly Slide[] = ['up', 'down', 'left', 'right'];
export const BACK = { up: 'down', down: 'up', left: 'right', right: 'left' } as const;

/** Where the gap would be after a move; undefined if no tile is there to move. */
export function gapAfter(side: number, gap: number, move: Slide): number | undefined {
  const row = Math.floor(gap / side) + GAP[move][0];
  const col = (gap % side) + GAP[move][1];
  return row >= 0 && row < side && col >= 0 && col < side ? row * side + col : undefined;
}

/** The board after a move, undefined if it is none. */
export function slide(side: number, tiles: readonly number[], move: Slide): number[] | undefined {
  const gap = tiles.indexOf(0);
  const target = gapAfter(side, gap, move);
  if (target === undefined) return undefined;
  const moved = [...tiles];
  moved[gap] = tiles[target]!;
  moved[target] = 0;
  return moved;
}

interface Node {
  readonly tiles: readonly number[];
  readonly moves: number;
  readonly move?: Slide;
  readonly before?: Node;
}

/**
 * A short solution, not always a shortest one: A* with twice the Manhattan distance (Pohl 1970), in buckets, since all costs
 * are small integers. Empty when the board is solved, or none was found among `maxNodes` boards.
 */
export function solve(side: number, start: readonly number[], maxNodes = 100_000): Slide[] {
  const buckets: Node[][] = [];
  const seen = new Set<string>();
  const add = (node: Node) => {
    const key = String.fromCharCode(...node.tiles);
    if (seen.has(key)) return;
    seen.add(key);
    const cost = node.moves + 2 * distance(side, node.tiles);
    const bucket = buckets[cost] ?? [];
    buckets[cost] = bucket;
    bucket.push(node);
  };
  add({ tiles: start, moves: 0 });
  for (let cost = 0; cost < buckets.length && seen.size < maxNodes; ) {
    const node = buckets[cost]?.pop();
    if (node === undefined) {
      cost += 1;
      continue;
    }
    if (distance(side, node.tiles) === 0) return path(node);
    for (const move of SLIDES) {
      const tiles = slide(side, node.tiles, move);
      if (tiles !== undefined) add({ tiles, moves: node.moves + 1, move, before: node });
    }
    cost = Math.max(0, cost - 1); // a move towards the goal costs one less than its board
  }
  return [];
}

function path(end: Node): Slide[] {
  const moves: Slide[] = [];
  for (let node: Node | undefined = end; node?.move !== undefined; node = node.before) moves.unshift(node.move);
  return moves;
}

/** Sum over the tiles of the rows and columns between each and its place. */
function distance(side: number, tiles: readonly number[]): number {
  let sum = 0;
  tiles.forEach((tile, i) => {
    if (tile === 0) return;
    const goal = tile - 1;
    sum += Math.abs(Math.floor(goal / side) - Math.floor(i / side)) + Math.abs((goal % side) - (i % side));
  });
  return sum;
}
