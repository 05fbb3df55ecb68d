import { describe, expect, it } from 'vitest';
import { environmentSuite } from '../../../testing/environment-suite.ts';
import { listEnvironments, makeEnvironment } from '../../registry.ts';
import { GAMES, textGames } from './index.ts';
import { PythonRandom } from './python-random.ts';
import { startGame } from './text-game.ts';

const task = { id: 't', prompt: '', label: '', metadata: {} };
const { signal } = new AbortController();
const nothing = { actionTokens: new Int32Array(), observationText: '', label: '', task, turn: 0, signal };

const levels = GAMES.flatMap(family =>
  [...Object.keys(family.levels), 'random'].map(level => ({ family, level, id: `game:${family.name}-v0-${level}` })),
);

describe.each(levels)('$id', ({ family, level, id }) => {
  const dice = new PythonRandom(5);
  const game = startGame(family, level, {}, new PythonRandom(0));
  const answers = Array.from({ length: 12 }, () => family.randomMove(game, dice));
  // No level has more turns than the 100 of extreme-hard 2048.
  const checks = environmentSuite({ make: makeEnvironment(id), tasks: [task], answers, maxTurns: 100 });
  for (const { name, run } of checks) it(name, run);

  it.each([
    ['a megabyte of text', 'a'.repeat(1 << 20)],
    ['a megabyte of digits', `\\boxed{${'9'.repeat(1 << 20)}`],
    ['a megabyte of spaces', `\\boxed{A${' '.repeat(1 << 20)}`],
    ['a megabyte of numbers', `\\boxed{${'1 '.repeat(1 << 19)}`],
    ['many beginnings', '\\boxed{'.repeat(1 << 17)],
    ['control characters', '\u0000\u001b[2J\u0007\\boxed{\u0000}'],
  ])('takes %s for an answer without a move', async (_, actionText) => {
    const environment = await makeEnvironment(id)();
    await environment.reset(task, { seed: 1, signal });
    const result = await environment.step({ ...nothing, actionText, finishReason: 'stop' });
    expect(result).toMatchObject({ reward: -0.1, done: true, isVoid: true });
  });
});

describe('text games', () => {
  it('are environments by name', () => {
    const names = listEnvironments().map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(textGames.map(({ name }) => name)));
  });

  it('take parameters over those of their level, and refuse what cannot be', async () => {
    const environment = await makeEnvironment('game:GuessTheNumber-v0-easy', { max: 3, turns: 1 })();
    const { observation } = await environment.reset(task, { seed: 1, signal });
    expect(JSON.stringify(observation)).toContain('from 1 to 3');
    expect(() => makeEnvironment('game:GuessTheNumber-v0-easy', { max: 1 })).toThrow('max must be larger than min');
    expect(() => makeEnvironment('game:GuessTheNumber-v0-easy', { maximum: 1 })).toThrow('maximum');
    expect(() => makeEnvironment('game:GuessTheNumber-v0-random', { max: 9 })).toThrow('max');
    expect(() => makeEnvironment('game:Minesweeper-v0-easy', { mines: 17 })).toThrow('mines must fit');
    expect(() => makeEnvironment('game:FifteenPuzzle-v0-random', { rules: 'gem' })).toThrow('it crashes');
    expect(() => makeEnvironment('game:GuessTheNumber-v0')).toThrow('game:GuessTheNumber-v0-easy');
  });
});
