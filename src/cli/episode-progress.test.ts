import { expect, it } from 'vitest';
import type { Executor } from '../agents/contracts.ts';
import { singleTurn } from '../agents/single-turn.ts';
import { testContext } from '../testing/executor-context.ts';
import type { MetricsRecord } from '../tracking/contracts.ts';
import { countingEpisodes } from './episode-progress.ts';

it('tells after each episode how many there were, their mean reward and the failed share', async () => {
  const records: MetricsRecord[] = [];
  const tracker = { name: 'test', log: (record: MetricsRecord) => void records.push(record), close: () => undefined };
  let closed = 0;
  const rewards = [1, Number.NaN, 0];
  const scoring = singleTurn({ reward: async () => [{ reward: rewards.shift()! }] });
  const agent: Executor = { ...scoring, close: async () => void closed++ };
  const counting = countingEpisodes(agent, tracker);
  for (const id of ['a', 'b', 'c']) {
    await counting.run({ id, prompt: 'p', label: '', metadata: {} }, testContext({ answers: () => 'x' }));
  }
  await counting.close?.();
  expect(records).toEqual([
    { step: 1, metrics: { reward: 1, failed: 0 } },
    { step: 2, metrics: { reward: 1, failed: 1 / 2 } },
    { step: 3, metrics: { reward: 1 / 2, failed: 1 / 3 } },
  ]);
  expect(closed).toBe(1);
});
