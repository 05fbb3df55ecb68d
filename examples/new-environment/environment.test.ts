import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from 'tokenloop/envs';
import { declareChecks, environmentSuite } from 'tokenloop/testing';
import { definition } from './environment.ts';

const parameters = definition.parameters.parse({});
const make = () => definition.make(parameters);
const task = { id: 'a', prompt: '', label: '', metadata: {} };
const { random, oracle } = definition.players!(parameters);

// What every environment must keep: the same episode for the same seed, hostile answers, an end, players as stated.
const checks = environmentSuite({
  make,
  tasks: [task],
  answers: ['7', '50', 'none'],
  maxTurns: parameters.tries,
  oracle: { player: oracle!, score: 1 },
  random: { player: random!, score: 0.325 },
});
declareChecks(checks, test);

test('halves the reward for a corrected answer', async () => {
  const environment = await make();
  const { observation } = await environment.reset(task, { seed: 1, signal: new AbortController().signal });
  assert.deepEqual(observation, [{ role: 'user', content: '62 0 52' }]);
  const answer = (actionText: string, turn: number) => environment.step({ actionText, turn } as Action);
  assert.equal((await answer('52', 0)).reward, 0);
  assert.equal((await answer('62', 1)).reward, 0.5);
});
