import { describe, expect, it } from 'vitest';
import { listEnvironments, makeEnvironment } from '../../registry.ts';
import { textGames } from './index.ts';

const task = { id: 't', prompt: '', label: '', metadata: {} };
const { signal } = new AbortController();
const nothing = { actionTokens: new Int32Array(), observationText: '', label: '', task, turn: 0, signal };

describe.each(textGames.map(({ name }) => name))('%s', id => {
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
