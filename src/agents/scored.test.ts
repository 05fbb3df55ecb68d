import { describe, expect, it } from 'vitest';
import type { Task } from '../episode/task.ts';
import type { RewardFunction, RewardInput } from '../rewards/contracts.ts';
import { testContext } from '../testing/executor-context.ts';
import { multiTurn } from './multi-turn.ts';
import { scoredAnswer } from './scored.ts';
import { singleTurn } from './single-turn.ts';

const task: Task = { id: 't', prompt: [{ role: 'user', content: '2+3' }], label: '5', metadata: {} };

describe('scoredAnswer', () => {
  it('gives the reward function what a single-turn episode gives it', async () => {
    const seen: RewardInput[] = [];
    const reward = (batch: readonly RewardInput[]) => {
      seen.push(...batch);
      return [{ reward: 0.5, score: 2, metrics: { m: 1 } }];
    };
    const answers = () => '5';
    const single = await singleTurn({ reward }).run(task, testContext({ answers }));
    const turns = await multiTurn(scoredAnswer(reward)).run(task, testContext({ answers }));
    const shown = seen.map(({ prompt, text, query, label }) => ({ prompt, text, query, label }));
    expect(shown[1]).toEqual(shown[0]);
    expect(turns.segments).toEqual(single.segments);
    expect([turns.score, turns.metrics.m]).toEqual([2, 1]);
  });

  it('takes the reward of its one step, and none of tokens, which it does not know', async () => {
    const played = (reward: RewardFunction) =>
      multiTurn(scoredAnswer(reward)).run(task, testContext({ answers: () => '5' }));
    expect((await played(() => [{ steps: [0.5] }])).steps).toMatchObject([{ reward: 0.5 }]);
    expect((await played(() => [{ tokens: [1, 2] }])).outcome).toMatchObject({
      failure: 'reward',
      message: expect.stringContaining('not searched for'),
    });
  });

  it('fails as the reward, not as an environment', async () => {
    const reward = () => Promise.reject(new Error('no key'));
    const { outcome } = await multiTurn(scoredAnswer(reward)).run(task, testContext({ answers: () => '5' }));
    expect(outcome).toMatchObject({ kind: 'failed', failure: 'reward', message: 'reward: no key' });
  });
});
