import { describe, expect, it } from 'vitest';
import { GAMES } from './index.ts';
import { PythonRandom } from './python-random.ts';
import { startGame, takeTurn } from './text-game.ts';

describe('Minesweeper', () => {
  const family = GAMES.find(({ name }) => name === 'Minesweeper')!;

  it.each([
    ['gem', false],
    ['fixed', true],
  ] as const)('that is cleared without flags is won by the rules %s: %s', (rules, win) => {
    const game = startGame(family, 'easy', { rules }, new PythonRandom(7));
    let turn = 0;
    let kind = 'valid';
    while (turn < 25 && kind === 'valid') {
      const cell = game.cells.find((one: { mine: boolean; revealed: boolean }) => !one.mine && !one.revealed);
      if (cell === undefined) break;
      kind = takeTurn(game, `\\boxed{reveal ${cell.row} ${cell.col}}`, ++turn).kind;
    }
    expect(game.view()).not.toContain('F');
    expect(kind === 'won').toBe(win);
  });
});
