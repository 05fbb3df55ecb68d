import { describe, expect, it } from 'vitest';
import type { Environment, Player } from '../envs/contracts.ts';
import { declareChecks, runChecks } from './check.ts';
import { type EnvironmentSuiteOptions, environmentSuite } from './environment-suite.ts';

const task = { id: 't', prompt: '', label: 'b', metadata: {} };

/** Three answers; 1 for the right one. */
function echo(turns = 0): Environment {
  let asked = turns;
  return {
    reset: (_, { seed }) => ({ observation: `seed ${seed}` }),
    step: ({ actionText, label }) => {
      asked += 1;
      const right = actionText === label;
      return { reward: right ? 1 : 0, done: right || asked >= 3, feedback: actionText };
    },
    fork: () => echo(asked),
  };
}

const knows: Player =
  ({ task }) =>
  () =>
    task.label;
/** Says b at every other turn: right in two of three turns of every other episode, say. */
const alternates: Player =
  ({ seed }) =>
  (_, turn) =>
    (seed + turn) % 4 === 0 ? 'b' : 'a';

const suite = (make: () => Environment, more: Partial<EnvironmentSuiteOptions> = {}) =>
  environmentSuite({ make, tasks: [task], answers: ['a', 'b'], maxTurns: 3, ...more });

describe('environmentSuite on an environment that keeps the contract', () => {
  declareChecks(
    suite(() => echo(), { oracle: { player: knows }, random: { player: alternates, score: 0.75 }, episodes: 8 }),
    it,
  );
});

describe('environmentSuite', () => {
  let made = 0;
  let shared = 0;
  it.each<[string, () => Environment, RegExp]>([
    [
      'differs from episode to episode',
      () => ({ ...echo(), reset: () => ({ observation: `${made++}` }) }),
      /same seed/,
    ],
    [
      'shares state between episodes',
      () => ({
        reset: () => {
          shared = 0;
          return { observation: 'o' };
        },
        step: () => ({ reward: ++shared, done: shared > 2, feedback: '' }),
      }),
      /same seed/,
    ],
    ['gives NaN', () => ({ ...echo(), step: () => ({ reward: Number.NaN, done: true }) }), /finite rewards/],
    ['gives no reward', () => ({ ...echo(), step: () => ({ done: true }) as never }), /finite rewards/],
    ['forgets feedback', () => ({ ...echo(), step: () => ({ reward: 0, done: false }) }), /feedback/],
    [
      'gives feedback that is none',
      () => ({ ...echo(), step: () => ({ reward: 0, done: true, feedback: [{ role: 'user' }] as never }) }),
      /feedback/,
    ],
    ['gives a done that is a number', () => ({ ...echo(), step: () => ({ reward: 0, done: 1 as never }) }), /until/],
    ['never ends', () => ({ ...echo(), step: () => ({ reward: 0, done: false, feedback: '' }) }), /done after 3/],
    [
      'trusts the policy',
      () => ({ ...echo(), step: ({ actionText }) => ({ reward: JSON.parse(`"${actionText}"`) ? 0 : 0, done: true }) }),
      /survives control characters/,
    ],
    ['cannot be closed', () => ({ ...echo(), close: () => Promise.reject(new Error('busy')) }), /closed/],
    [
      'cannot be closed after an error',
      () => {
        let ready = false;
        return {
          ...echo(),
          reset: () => {
            ready = true;
            return { observation: 'o' };
          },
          close: () => (ready ? undefined : Promise.reject(new Error('not open'))),
        };
      },
      /closed/,
    ],
    [
      'is its own fork',
      () => ({
        ...echo(),
        fork() {
          return this;
        },
      }),
      /forks/,
    ],
    ['forks into the beginning', () => ({ ...echo(), fork: () => echo() }), /forks/],
  ])('fails an environment that %s', async (_, make, check) => {
    const { failed } = await runChecks(suite(make));
    expect(failed.map(({ name }) => name)).toContainEqual(expect.stringMatching(check));
  });

  it('says the scores that players reach where they are not those that were stated', async () => {
    const players = { oracle: { player: alternates }, random: { player: alternates, score: 0.5 } };
    const { failed, passed } = await runChecks(suite(() => echo(), players));
    expect(failed.map(({ error }) => (error as Error).message)).toEqual([
      "the oracle's mean score is 0.750, below 1",
      'it is 0.750; state that as random.score',
    ]);
    expect(passed).toContain('is independent of its forks, if it can be forked');
  });

  it('needs a task and an answer', () => {
    expect(() => suite(echo, { tasks: [] })).toThrow('at least one task');
    expect(() => suite(echo, { answers: [] })).toThrow('at least one answer');
  });
});

describe('declareChecks', () => {
  it('declares what is skipped with its reason', () => {
    const declared: string[] = [];
    const declare = Object.assign((name: string) => declared.push(name), {
      skip: (name: string) => declared.push(`skipped ${name}`),
    });
    const run = async () => undefined;
    declareChecks(
      [
        { name: 'one', run },
        { name: 'two', run, skip: 'no weights' },
      ],
      declare,
    );
    expect(declared).toEqual(['one', 'skipped two: no weights']);
  });
});
