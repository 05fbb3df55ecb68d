import { expect, it } from 'vitest';
import type { Ending } from '../../sandbox/contracts.ts';
import type { Verdict } from '../../sandbox/judge.ts';
import { VerdictMemory } from './verdict-memory.ts';

const verdicts = (ending: Ending = 'ok'): Verdict[] => [{ passed: true, ending, got: undefined, error: undefined }];

it('runs once what is asked for twice, at the same time or later, and forgets the longest unused', async () => {
  const memory = new VerdictMemory();
  const runs: string[] = [];
  const ask = (what: string) =>
    memory.get(
      [what],
      async () => {
        runs.push(what);
        return verdicts();
      },
      2,
    );
  await Promise.all([ask('a'), ask('a')]);
  await ask('b');
  await ask('a');
  await ask('c');
  await ask('a');
  await ask('b');
  expect(runs).toEqual(['a', 'b', 'c', 'b']);
});

it('keeps neither errors nor what a clock has decided, and nothing when it is off', async () => {
  const memory = new VerdictMemory();
  let runs = 0;
  const counted = async () => {
    runs += 1;
    return verdicts('timeout');
  };
  await memory.get('slow', counted, 9);
  await memory.get('slow', counted, 9);
  await memory.get('off', counted, 0);
  await memory.get('off', counted, 0);
  expect(runs).toBe(4);
  await expect(memory.get('broken', () => Promise.reject(new Error('no sandbox')), 9)).rejects.toThrow('no sandbox');
  expect(await memory.get('broken', async () => verdicts(), 9)).toEqual(verdicts());
});
