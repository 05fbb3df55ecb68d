import { describe, expect, it } from 'vitest';
import { GAMES } from './index.ts';
import { PythonRandom } from './python-random.ts';
import { startGame, takeTurn } from './text-game.ts';

type Rules = 'gem' | 'fixed';

/** What a first answer does, given or made from the state. */
function answer(name: string, level: string, rules: Rules, text: string | ((state: string) => string)) {
  const game = startGame(GAMES.find(one => one.name === name)!, level, { rules }, new PythonRandom(7));
  const { kind, reward } = takeTurn(game, typeof text === 'string' ? text : text(game.state()), 1);
  return [kind, reward];
}

describe('where a rule of GEM is a mistake, `rules` chooses', () => {
  it('GuessTheNumber: 0 is no guess, or one out of range', () => {
    expect(answer('GuessTheNumber', 'easy', 'gem', '\\boxed{0}')).toEqual(['unreadable', -0.1]);
    expect(answer('GuessTheNumber', 'easy', 'fixed', '\\boxed{0}')).toEqual(['invalid', 0]);
  });

  it('FifteenPuzzle: capitals are no move, or one', () => {
    expect(answer('FifteenPuzzle', 'hard', 'gem', '\\boxed{DOWN}')).toEqual(['unreadable', -0.1]);
    expect(answer('FifteenPuzzle', 'hard', 'fixed', '\\boxed{DOWN}')).toEqual(['valid', 0]);
  });

  it('Wordle: a tab between letters is a letter, or nothing', () => {
    const spelled = (state: string) => `\\boxed{${[...state.split(' ')[0]!].join('\t')}}`;
    expect(answer('Wordle', 'hard', 'gem', spelled)).toEqual(['invalid', 0]);
    expect(answer('Wordle', 'hard', 'fixed', spelled)).toEqual(['won', 1]);
  });

  it.each<[Rules, string]>([
    ['gem', 'valid'],
    ['fixed', 'won'],
  ])('Hangman by the rules %s: the last letter is %s', (rules, last) => {
    const game = startGame(GAMES.find(({ name }) => name === 'Hangman')!, 'hard', { rules }, new PythonRandom(7));
    const [secret] = game.state().split(' ') as [string];
    const turns = [...new Set(secret)].map((letter, i) => takeTurn(game, `\\boxed{${letter}}`, i + 1));
    expect(turns.map(({ kind }) => kind)).toEqual([...turns.slice(1).map(() => 'valid'), last]);
    const word = rules === 'gem' ? takeTurn(game, `\\boxed{${secret}}`, turns.length + 1) : undefined;
    const score = [...turns, ...(word ? [word] : [])].reduce((sum, { reward }) => sum + reward, 0);
    expect(score).toBeCloseTo(1, 12);
  });

  it.each([
    ['gem', false],
    ['fixed', true],
  ] as const)('Minesweeper: cleared without flags is won by the rules %s: %s', (rules, win) => {
    const family = GAMES.find(({ name }) => name === 'Minesweeper')!;
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

  it('are refused in games that have but one set of them', () => {
    const others = GAMES.filter(
      ({ parameters, levels }) => !parameters.safeParse({ ...levels.easy, rules: 'fixed' }).success,
    );
    expect(others.map(({ name }) => name)).toEqual(['Game2048', 'Mastermind', 'Sudoku', 'TowerofHanoi']);
  });
});
