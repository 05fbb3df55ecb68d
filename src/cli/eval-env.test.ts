import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { beforeAll, describe, expect, it } from 'vitest';
import { workplace } from '../../tests/support/workplace.ts';
import { evaluationOptions } from '../config/eval.ts';
import { resolve } from '../config/load.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { scriptedSampler } from '../testing/scripted-sampler.ts';
import type { PlaySummary } from '../training/players.ts';
import { evaluateEnvironments } from './eval-env.ts';

const cwd = workplace();
const renderer = byteRenderer();

/** Says the same thing always; what it earns depends on the seed of the environment alone. */
beforeAll(() => {
  writeFileSync(
    join(cwd, 'lucky.mjs'),
    `export const definition = {
      name: 'lucky', version: 1, help: 'Luck.',
      parameters: { safeParse: given => ({ success: true, data: given }) },
      maxTurns: () => 2,
      tasks: [{ id: 'a', prompt: 'A', label: 'x', metadata: {} }, { id: 'b', prompt: 'B', label: 'y', metadata: {} }],
      players: () => ({ random: () => () => 'hi', oracle: ({ task }) => () => task.label }),
      make: ({ scale = 1 }) => {
        let luck = 0;
        return {
          reset: ({ prompt }, { seed }) => { luck = scale * (seed % 100) / 100; return { observation: prompt }; },
          step: ({ turn }) => ({ reward: luck, done: turn === 1, feedback: '.' }),
        };
      },
    };`,
  );
});

async function evaluated(...argv: string[]) {
  const { values } = resolve(evaluationOptions, { argv: ['--train.full_determinism_enable', ...argv], cwd });
  const [out, err]: [string[], string[]] = [[], []];
  let opened = 0;
  const sampler = scriptedSampler({ answers: () => 'hi', codec: renderer });
  const open = async () => {
    opened += 1;
    return { sampler, renderer, close: async () => undefined, name: 'scripted' };
  };
  await evaluateEnvironments(
    {
      values,
      cwd,
      stdin: Readable.from([]) as never,
      stdout: { write: (text: string) => out.push(text) },
      stderr: { write: (text: string) => err.push(text) },
      interrupt: { signal: new AbortController().signal, dispose: () => undefined },
    },
    open,
  );
  return { out: out.join(''), err: err.join(''), opened };
}
const rowsOf = (out: string) =>
  out
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as PlaySummary);

describe('eval --env', () => {
  it('lets the scripted players of several environments play, and shows a table', async () => {
    const argv = ['--env', 'guess-number', 'game:GuessTheNumber-v0-*', '--eval.episodes', '20'];
    const { out, err, opened } = await evaluated(...argv);
    expect(err).toBe('');
    expect(opened).toBe(0);
    expect(out).toMatch(
      /^environment +player +episodes +score +reward +solved +95 % interval +turns +illegal +failed\n/,
    );
    const names = ['guess-number', ...['easy', 'hard', 'random'].map(level => `game:GuessTheNumber-v0-${level}`)];
    const shown = out.split('\n').slice(2, 10);
    expect(shown.map(line => line.split(/ +/).slice(0, 3))).toEqual(
      names.flatMap(name => ['random', 'oracle'].map(player => [name, player, '20'])),
    );
    expect(out).toMatch(/\nresult: solved by random 0\.\d{3}, solved by oracle [01]\.\d{3}, [\d.]+ s, seed 42\n$/);
    expect((await evaluated(...argv)).out.replace(/[\d.]+ s,/, '')).toBe(out.replace(/[\d.]+ s,/, ''));
  });

  it('gives every player, the model too, the same games', async () => {
    const argv = [
      '--env',
      'lucky.mjs',
      '--eval.player',
      'model',
      'random',
      'oracle',
      '--eval.episodes',
      '30',
      '--json',
    ];
    const { out, opened } = await evaluated(...argv, '--eval.pass_score', '1');
    const rows = rowsOf(out);
    expect(opened).toBe(1);
    expect(rows.map(({ player }) => player)).toEqual(['scripted', 'random', 'oracle']);
    const [model, ...others] = rows.map(({ player: _, ...rest }) => rest);
    expect(model).toMatchObject({ environment: 'lucky.mjs', episodes: 30, failed: 0, turns: 2, illegal: 0 });
    expect(model!.solved).toBeGreaterThan(0.2);
    for (const other of others) expect(other).toEqual(model);
  });

  it('passes parameters on, and takes other seeds', async () => {
    const score = async (...argv: string[]) =>
      rowsOf((await evaluated('--env', 'lucky.mjs', '--json', ...argv)).out)[0]!.score;
    expect(await score('--agent.env_parameters', '{scale: 2}')).toBeCloseTo(2 * (await score()), 10);
    expect(await score('--train.seed', '7')).not.toBe(await score());
  });

  it('writes what eval.compare reads', async () => {
    await evaluated(
      '--env',
      'lucky.mjs',
      '--eval.player',
      'oracle',
      '--eval.output',
      'oracle.json',
      '--eval.episodes',
      '4',
    );
    const file = JSON.parse(readFileSync(join(cwd, 'oracle.json'), 'utf8'));
    expect(file).toMatchObject({ format: 1, model: 'oracle', plan: { samples: 1, seed: 42 } });
    expect(file.metrics['eval/lucky.mjs/turns']).toBe(2);
    expect(file.tasks.map(({ id }: { id: string }) => id)).toEqual([0, 1, 2, 3].map(n => `lucky.mjs:${n}`));
  });

  it('plays tasks of a dataset', async () => {
    writeFileSync(join(cwd, 'sums.jsonl'), '{"input": "1+2", "label": "3"}\n{"input": "2+2", "label": "5"}\n');
    const argv = ['--env', 'calculator', '--eval.dataset', 'sums.jsonl', '--data.label_key', 'label', '--json'];
    const rows = rowsOf((await evaluated(...argv, '--eval.player', 'oracle', '--eval.episodes', '6')).out);
    expect(rows).toMatchObject([{ episodes: 6, solved: 1 }]);
  });

  it.each([
    [['--env', 'game:*-esy'], /no environment matches game:\*-esy; known: calculator/],
    [['--env', 'guess-numbr'], /unknown environment "guess-numbr"; known, nearest first: guess-number/],
    [
      ['--env', 'guess-number', '--agent.env_parameters', '{hihg: 3}'],
      /guess-number: unknown parameter "hihg"; it has, nearest first: high/,
    ],
    [['--env', 'guess-number', '--agent.env', 'calculator'], /agent\.env is not for eval\.env; leave it out/],
    [['--env', 'guess-number', '--eval.n_samples_per_prompt', '2'], /eval\.episodes says how many/],
    [
      ['--env', 'guess-number', '--eval.output', 'o.json'],
      /eval\.output holds the result of one player, and there are 2/,
    ],
  ])('%j is refused', async (argv, message) => {
    await expect(evaluated(...argv)).rejects.toThrow(message);
  });

  it('stops when too many episodes fail, with the reason, and warns of fewer', async () => {
    writeFileSync(
      join(cwd, 'flaky.mjs'),
      `let n = 0;
      const step = () => { if (n++ % 4 === 0) throw new Error('server is down'); return { reward: 1, done: true }; };
      export const definition = {
        name: 'flaky', version: 1, help: '', parameters: { safeParse: data => ({ success: true, data }) },
        players: () => ({ random: () => () => 'a', oracle: () => () => 'b' }),
        make: () => ({ reset: () => ({ observation: 'go' }), step }),
      };`,
    );
    const argv = ['--env', 'flaky.mjs', '--eval.player', 'random', '--eval.episodes', '8', '--json'];
    const { out, err } = await evaluated(...argv);
    expect(err).toContain('flaky.mjs: 2 of 8 episodes failed: environment.step: server is down\n');
    expect(rowsOf(out)).toMatchObject([{ failed: 2, solved: 0.75, score: 1 }]);
    await expect(evaluated(...argv, '--rollout.max_failure_rate', '0.1')).rejects.toThrow(
      /2 of 8 .*max_failure_rate is 0\.1/,
    );
  });
});
