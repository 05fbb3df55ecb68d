import { describe, expect, it } from 'vitest';
import type { Message, Task } from '../../episode/task.ts';
import type { Action, Environment, StepResult } from '../contracts.ts';
import { makeEnvironment } from '../registry.ts';

const task: Task = { id: 't', prompt: '', label: '', metadata: {} };
const { signal } = new AbortController();

async function started(seed: number, parameters = {}): Promise<Environment> {
  const environment = await makeEnvironment('guess-number', parameters)();
  await environment.reset(task, { seed, signal });
  return environment;
}

async function guess(environment: Environment, actionText: string, cut = false): Promise<StepResult> {
  const rest = { actionTokens: new Int32Array(), observationText: '', label: '', task, turn: 0, signal };
  const action: Action = { actionText, finishReason: cut ? 'length' : 'stop', ...rest };
  return environment.step(action);
}

/** The hidden number, found by guessing all. */
async function secretOf(seed: number): Promise<number> {
  const environment = await started(seed, { guesses: 8 });
  for (let number = 1; number <= 8; number++) if ((await guess(environment, `${number}`)).reward === 1) return number;
  throw new Error('no number was right');
}

/** Guesses the middle of what is left; the reward. */
async function search(seed: number, parameters: { high?: number; guesses?: number } = {}): Promise<number> {
  const environment = await started(seed, parameters);
  let [low, high] = [1, parameters.high ?? 8];
  for (;;) {
    const middle = Math.floor((low + high) / 2);
    const { reward, done, feedback } = await guess(environment, `${middle}`);
    if (done) return reward;
    const [message] = feedback as readonly Message[];
    if (message!.content === '<') high = middle - 1;
    else low = middle + 1;
  }
}

describe('guess-number', () => {
  it('hides a number that depends on the seed alone, each about equally often', async () => {
    const counts = new Map<number, number>();
    for (let i = 0; i < 400; i++) {
      const secret = await secretOf(Math.imul(i, 0x9e3779b1) >>> 0);
      counts.set(secret, (counts.get(secret) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    // 50 each are expected; 4 standard deviations of a binomial count are 26.
    for (const count of counts.values()) expect(Math.abs(count - 50)).toBeLessThan(27);
    expect(await secretOf(5)).toBe(await secretOf(5));
  });

  it('says smaller or larger, and ends on the right guess or the last', async () => {
    const seed = 3;
    const secret = await secretOf(seed);
    const environment = await started(seed);
    const low = await guess(environment, '0');
    expect(low).toMatchObject({ reward: 0, done: false, feedback: [{ role: 'user', content: '>' }], stateKey: '0>' });
    expect(await guess(environment, '9')).toMatchObject({ feedback: [{ content: '<' }], stateKey: '0>9<' });
    expect(await guess(environment, `${secret}`)).toMatchObject({ reward: 1, done: true, metrics: { correct: 1 } });
    const loser = await started(seed, { guesses: 1 });
    expect(await guess(loser, '0')).toMatchObject({ reward: 0, done: true, metrics: { correct: 0, invalid: 0 } });
  });

  it.each(['', 'x', '-1', '1.0', '1 ', '12345678'])('takes %j for a wasted guess', async answer => {
    const environment = await started(1);
    expect(await guess(environment, answer)).toMatchObject({
      reward: 0,
      done: false,
      feedback: [{ role: 'user', content: '?' }],
      metrics: { invalid: 1 },
    });
  });

  it('does not take a cut answer for a guess', async () => {
    const seed = 4;
    expect(await guess(await started(seed), `${await secretOf(seed)}`, true)).toMatchObject({ reward: 0, done: false });
  });

  it('is won by binary search 7 times of 8 in three guesses, always in four', async () => {
    const seeds = new Map<number, number>();
    for (let seed = 0; seeds.size < 8; seed++) seeds.set(await secretOf(seed), seed);
    let wins = 0;
    for (const seed of seeds.values()) {
      wins += await search(seed);
      expect(await search(seed, { guesses: 4 })).toBe(1);
    }
    expect(wins / seeds.size).toBe(0.875);
  });

  it('shows its range and refuses one that is none', async () => {
    const environment = await makeEnvironment('guess-number', { low: 0, high: 99 })();
    const { observation } = await environment.reset(task, { seed: 1, signal });
    expect(observation).toEqual([{ role: 'user', content: '0-99' }]);
    expect(() => makeEnvironment('guess-number', { low: 9 })).toThrow(/low and high must be/);
  });
});
