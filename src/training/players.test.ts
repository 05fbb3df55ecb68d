import { describe, expect, it } from 'vitest';
import type { Environment, Player } from '../envs/contracts.ts';
import { openEnvironment } from '../envs/registry.ts';
import type { Episode } from '../episode/episode.ts';
import type { Task } from '../episode/task.ts';
import { environmentSeed, playedBy, playTasks, summarise } from './players.ts';

const task = (n: number): Task => ({ id: `t${n}`, prompt: '', label: '', metadata: {} });
const tasks = Array.from({ length: 60 }, (_, n) => task(n));
const { signal } = new AbortController();
const options = { seed: 1, passScore: 1, callTimeoutMs: 1000, signal, maxTurns: 100 };
const says =
  (...answers: string[]): Player =>
  () =>
  (_, turn) =>
    answers[turn] ?? 'x';
const environment = (step: Environment['step'], more: Partial<Environment> = {}) => {
  return (): Environment => ({ reset: () => ({ observation: 'go' }), step, ...more });
};

describe('playTasks', () => {
  it('plays each task with the seed that an evaluation gives it', async () => {
    const seeds: number[] = [];
    const make = environment(() => ({ reward: 1, done: true }), {
      reset: (_, { seed }) => {
        seeds.push(seed);
        return { observation: 'go' };
      },
    });
    const played = await playTasks(make, says('a'), tasks.slice(0, 2), options);
    expect(seeds).toEqual(tasks.slice(0, 2).map(one => environmentSeed(1, one)));
    expect(played).toMatchObject([{ score: 1, reward: 1, turns: 1, illegal: 0, solved: true }, { solved: true }]);
  });

  it('counts rewards, the last score, turns and illegal answers', async () => {
    const make = environment(({ turn }) => ({
      reward: 0.25,
      score: turn,
      done: turn === 3,
      feedback: '.',
      isVoid: turn === 0,
      metrics: { invalid: turn < 2 ? 1 : 0 },
    }));
    const [played] = await playTasks(make, says(), [task(0)], { ...options, passScore: 3 });
    expect(played).toMatchObject({ score: 3, reward: 1, turns: 4, illegal: 2, solved: true });
  });

  it('has solved what was won, whatever its score, and else what reaches the pass score', async () => {
    const solved = async (score: number, metrics?: Record<string, number>) => {
      const make = environment(() => ({ reward: score, done: true, ...(metrics && { metrics }) }));
      return (await playTasks(make, says('a'), [task(0)], options))[0]!.solved;
    };
    expect(await solved(1 - 1e-12)).toBe(true);
    expect(await solved(0.99)).toBe(false);
    expect(await solved(0.99, { won: 1 })).toBe(true);
    expect(await solved(1, { won: 0 })).toBe(false);
  });

  it('gives up an environment that never ends', async () => {
    const make = environment(() => ({ reward: 0, done: false, feedback: '.' }));
    const [played] = await playTasks(make, says(), [task(0)], { ...options, maxTurns: 7 });
    expect(played).toMatchObject({ turns: 7, solved: false });
  });

  it('goes on after an episode that failed, and closes its environment', async () => {
    let closed = 0;
    const make = environment(
      ({ task: { id }, turn }) => {
        if (id === 't0' && turn === 1) throw new Error('server is down');
        return { reward: 1, done: turn === 1, feedback: '.' };
      },
      {
        close: async () => {
          closed += 1;
        },
      },
    );
    const played = await playTasks(make, says(), tasks.slice(0, 2), options);
    expect(played.map(({ failure }) => failure)).toEqual(['environment.step: server is down', undefined]);
    expect(played[0]!.solved).toBe(false);
    expect(closed).toBe(2);
    expect(summarise('e', 'p', played)).toMatchObject({ episodes: 2, failed: 1, solved: 0.5, score: 2, turns: 2 });
  });

  it('rejects when it is interrupted', async () => {
    const controller = new AbortController();
    const make = environment(() => {
      controller.abort(new Error('interrupted'));
      return { reward: 1, done: true };
    });
    const playing = playTasks(make, says('a'), tasks, { ...options, signal: controller.signal });
    await expect(playing).rejects.toThrow('interrupted');
  });

  it('tells a good player from a careless one', async () => {
    const { make, players } = openEnvironment('game:GuessTheNumber-v0-easy');
    const of = async (kind: 'oracle' | 'random') =>
      summarise('g', kind, await playTasks(make, players![kind]!, tasks, options));
    const [oracle, random] = [await of('oracle'), await of('random')];
    expect(oracle).toMatchObject({ solved: 1, solvedHigh: 1, score: 1, illegal: 0, failed: 0, episodes: 60 });
    expect(oracle.solvedLow).toBeGreaterThan(random.solvedHigh);
    expect(random.illegal).toBeGreaterThan(0);
  });
});

describe('playedBy', () => {
  const episode: Episode = {
    id: 'e',
    task: task(0),
    group: 'g',
    sample: 0,
    segments: [],
    steps: [
      { segment: 1, reward: 0.5, finishReason: 'stop', isVoid: true, metrics: { won: 0, invalid: 0 } },
      { segment: 3, reward: 0.25, finishReason: 'stop', metrics: { won: 1, invalid: 0 } },
    ],
    outcome: { kind: 'done' },
    score: 0.75,
    metrics: {},
  };

  it('tells of an episode what is told of scripted players', () => {
    const expected = { task: task(0), score: 0.75, reward: 0.75, turns: 2, illegal: 1, solved: true };
    expect(playedBy(episode, 1)).toEqual(expected);
    const outcome = { kind: 'failed', failure: 'environment', message: 'down', step: 2 } as const;
    expect(playedBy({ ...episode, outcome }, 1)).toEqual({ ...expected, solved: false, failure: 'down' });
  });
});
