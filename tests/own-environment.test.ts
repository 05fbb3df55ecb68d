import { describe, expect, it } from 'vitest';
import type { Action, Environment } from '../src/envs/index.ts';
import { declareChecks, environmentSuite } from '../src/testing/index.ts';

const file = new URL('../examples/own-environment/agent.js', import.meta.url);
const { default: SecondChances } = (await import(file.href)) as { default: new () => Environment };
const task = { id: 'a', prompt: '130+220', label: '350', metadata: {} };

describe('examples/own-environment', () => {
  const answers = ['a350', 'a340', 'c1'];
  declareChecks(environmentSuite({ make: () => new SecondChances(), tasks: [task], answers }), it);

  it('gives half the reward for a corrected answer', async () => {
    const environment = new SecondChances();
    const answer = (actionText: string) => environment.step({ actionText, label: '350' } as Action);
    const { signal } = new AbortController();
    expect(await environment.reset(task, { seed: 1, signal })).toEqual({
      observation: [{ role: 'user', content: '130+220' }],
    });
    expect(await answer('a340')).toMatchObject({ reward: 0, done: false, feedback: [{ role: 'tool', content: 'e' }] });
    expect(await answer('a350')).toMatchObject({ reward: 0.5, done: true });
  });
});
