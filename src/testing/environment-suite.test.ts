import { describe, expect, it } from 'vitest';
import type { Environment } from '../envs/contracts.ts';
import { environmentSuite } from './environment-suite.ts';

const task = { id: 't', prompt: '', label: '', metadata: {} };

function echo(): Environment {
  let turns = 0;
  return {
    reset: (_, { seed }) => ({ observation: `seed ${seed}` }),
    step: ({ actionText }) => {
      turns += 1;
      return { reward: 0, done: turns >= 3, feedback: actionText };
    },
  };
}

/** Names of the checks that an environment does not pass. */
async function failing(make: () => Environment): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of environmentSuite({ make, tasks: [task], answers: ['a', 'b'], maxTurns: 3 })) {
    await run().catch(() => failed.push(name));
  }
  return failed;
}

describe('environmentSuite', () => {
  it('passes an environment that keeps the contract', async () => {
    expect(await failing(echo)).toEqual([]);
  });

  let made = 0;
  it.each<[string, () => Environment, RegExp]>([
    [
      'differs from episode to episode',
      () => ({ ...echo(), reset: () => ({ observation: `${made++}` }) }),
      /same seed/,
    ],
    ['gives NaN', () => ({ ...echo(), step: () => ({ reward: Number.NaN, done: true }) }), /finite rewards/],
    ['forgets feedback', () => ({ ...echo(), step: () => ({ reward: 0, done: false }) }), /feedback/],
    ['never ends', () => ({ ...echo(), step: () => ({ reward: 0, done: false, feedback: '' }) }), /done after 3/],
    [
      'trusts the policy',
      () => ({ ...echo(), step: ({ actionText }) => ({ reward: JSON.parse(`"${actionText}"`) ? 0 : 0, done: true }) }),
      /hostile/,
    ],
    ['cannot be closed', () => ({ ...echo(), close: () => Promise.reject(new Error('busy')) }), /closed/],
  ])('fails an environment that %s', async (_, make, check) => {
    expect(await failing(make)).toContainEqual(expect.stringMatching(check));
  });
});
