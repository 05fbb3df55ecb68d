import { describe, expect, it } from 'vitest';
import { SLIDES, slide } from './sliding.ts';
import { shortest } from './walking-distance.ts';

/** Moves to the goal of every board of a side that can be solved, by going outwards from the goal. */
function distances(side: number): Map<string, number> {
  const goal = Array.from({ length: side * side }, (_, i) => (i + 1) % (side * side));
  const found = new Map([[`${goal}`, 0]]);
  let front = [goal];
  for (let moves = 1; front.length > 0; moves++) {
    const boards = front.flatMap(tiles => SLIDES.map(move => slide(side, tiles, move)));
    front = [];
    for (const tiles of boards) {
      if (tiles === undefined || found.has(`${tiles}`)) continue;
      found.set(`${tiles}`, moves);
      front.push(tiles);
    }
  }
  return found;
}

describe('shortest', () => {
  it.each([
    [2, 12, 6, 1],
    [3, 181_440, 31, 499],
  ])('solves the puzzle of side %i in the fewest moves', (side, boards, most, every) => {
    const all = [...distances(side)];
    // 31 moves is what the eight-puzzle is known to need at most (Reinefeld 1993).
    expect([all.length, all.at(-1)![1]]).toEqual([boards, most]);
    for (const [key, moves] of all.filter((_, i) => i % every === 0)) {
      let tiles = key.split(',').map(Number);
      const path = shortest(side, tiles, 31);
      expect(path).toHaveLength(moves);
      for (const move of path!) tiles = slide(side, tiles, move)!;
      expect(tiles.at(-1)).toBe(0);
      if (moves > 0) expect(shortest(side, key.split(',').map(Number), moves - 1)).toBeUndefined();
    }
  });

  it('gives up where the search takes too long', () => {
    const hardest = [0, 12, 9, 13, 15, 11, 10, 14, 3, 7, 2, 5, 4, 8, 6, 1];
    expect(shortest(4, hardest, 80, 1000)).toBeUndefined();
  });
});
