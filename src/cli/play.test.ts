import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { workplace } from '../../tests/support/workplace.ts';
import { resolve } from '../config/load.ts';
import { command, play } from './play.ts';

const cwd = workplace();

function begin(stdin: Readable, ...argv: string[]) {
  const { values } = resolve(command.options, { argv, cwd });
  const written: string[] = [];
  const stream = { write: (text: string) => written.push(text) };
  const controller = new AbortController();
  const interrupt = { signal: controller.signal, dispose: () => undefined };
  const ended = play({ values, cwd, stdin, stdout: stream, stderr: stream, interrupt });
  return { ended, controller, written };
}

async function played(lines: string, ...argv: string[]): Promise<string> {
  const { ended, written } = begin(Readable.from([lines]), ...argv);
  await ended;
  return written.join('');
}

describe('play', () => {
  it('shows what is seen, takes a line as an answer, and says how the game ended', async () => {
    // Seed 42 hides a 6 between 1 and 8.
    expect(await played('4\nsix\n6\n7\n', 'guess-number')).toBe(
      [
        'guess-number, seed 42: Find a number in few guesses; told only whether it is smaller or larger.',
        '',
        '1-8',
        '',
        '> 4',
        '[reward 0]',
        '>',
        '',
        '> six',
        '[reward 0, invalid 1]',
        '?',
        '',
        '> 6',
        '[reward 1, correct 1]',
        '',
        'over: score 1, reward 1, turns 3',
        '',
      ].join('\n'),
    );
  });

  it('plays the same game for the same seed, with parameters', async () => {
    const argv = ['game:GuessTheNumber-v0-easy@1', '--train.seed', '3', 'max=12', 'turns=2'];
    const game = await played('\\boxed{11}\n\\boxed{12}\n', ...argv);
    expect(game).toContain('from 1 to 12; find it in at most 2 turns');
    expect(game).toMatch(/over: score [\d.]+, reward [\d.]+, turns 2\n$/);
    expect(await played('\\boxed{11}\n\\boxed{12}\n', ...argv)).toBe(game);
    expect(await played('', ...argv.toSpliced(2, 1, '4'))).not.toBe(await played('', ...argv));
  });

  it('ends in order when there are no more answers', async () => {
    expect(await played('4', 'guess-number')).toMatch(/> 4\n\[reward 0\]\n>\n\n> \nno more answers: .* turns 1\n$/);
  });

  it('joins lines that end in a backslash', async () => {
    expect(await played('4\\\n5\n', 'guess-number')).toContain('[reward 0, invalid 1]');
  });

  it('ends at once when it is interrupted while it waits for an answer', async () => {
    const { ended, controller, written } = begin(new PassThrough(), 'guess-number');
    while (!written.includes('\n> ')) await new Promise(setImmediate);
    controller.abort(new Error('interrupted'));
    await ended;
    expect(written.at(-1)).toBe('interrupted: score 0, reward 0, turns 0\n');
  });

  it('lets scripted players be watched', async () => {
    const won = await played('', 'game:TowerofHanoi-v0-easy', '--play.player', 'oracle');
    expect(won).toContain('All disks are on tower C.');
    expect(won).toMatch(/over: score 1, reward 1, turns 7\n$/);
  });

  it('plays a file of the user, with a task', async () => {
    writeFileSync(
      join(cwd, 'echo.mjs'),
      `export default class {
        reset({ prompt, label }) { return { observation: [{ role: 'tool', content: prompt + ', ' + label }] }; }
        step({ actionText, observationText }) {
          return { reward: 0.5, score: 2, done: actionText === 'end', feedback: '[' + observationText + ']' };
        }
      }`,
    );
    const argv = ['echo.mjs', '--play.prompt', 'say', '--play.label', 'end'];
    expect(await played('a\nend\n', ...argv)).toBe(
      [
        'echo.mjs, seed 42\n\ntool: say, end\n',
        '> a\n[reward 0.5, score 2]\n[tool: say, end]\n',
        '> end\n[reward 0.5, score 2]\n[tool: say, enda[tool: say, end]]\n\nover: score 2, reward 1, turns 2\n',
      ].join('\n'),
    );
  });

  it('lists what can be played', async () => {
    expect(await played('')).toMatch(/^environment +what it is\n-+ .*\ncalculator@1 +Arithmetic/);
  });

  it.each([
    [['gues-number'], /unknown environment "gues-number"; known, nearest first: guess-number, /],
    [['guess-number@7'], /environment guess-number has no version 7; known: 1/],
    [['guess-number', 'hihg=3'], /environment guess-number: unknown parameter "hihg"; it has, nearest first: high/],
    [['guess-number', '--agent.env_parameters', '{high: 0}'], /environment guess-number: low and high must be/],
    [['nothing.mjs'], /environment file nothing\.mjs: no such file/],
    [['echo.mjs', 'high=3'], /echo\.mjs exports no definition, so it has no parameters; leave out high/],
    [['echo.mjs', '--play.player', 'random'], /echo\.mjs has no random player/],
  ])('%j is refused', async (argv, message) => {
    await expect(played('', ...argv)).rejects.toThrow(message);
  });

  it('says whose fault it is when the environment breaks', async () => {
    writeFileSync(
      join(cwd, 'broken.mjs'),
      "export default () => ({ reset: () => ({ observation: 'go' }), step: () => ({ reward: NaN, done: true }) });",
    );
    await expect(played('a\n', 'broken.mjs')).rejects.toThrow('environment.step: reward: expected number, got NaN');
  });
});
