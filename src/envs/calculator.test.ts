import { describe, expect, it } from 'vitest';
import type { Task } from '../episode/task.ts';
import type { Action, StepResult } from './contracts.ts';
import { makeEnvironment } from './registry.ts';

const task: Task = { id: 't', prompt: '130+220', label: '350', metadata: {} };
const { signal } = new AbortController();
const say = (content: string) => [{ role: 'tool', content }];

async function play(answers: readonly (string | [string, 'length'])[], parameters = {}): Promise<StepResult[]> {
  const environment = await makeEnvironment('calculator', parameters)();
  await environment.reset(task, { seed: 1, signal });
  const results: StepResult[] = [];
  for (const [turn, answer] of answers.entries()) {
    const [actionText, finishReason] = typeof answer === 'string' ? [answer, 'stop' as const] : answer;
    const action: Action = { actionText, finishReason, turn, task, label: task.label, signal, ...unread };
    results.push(await environment.step(action));
  }
  return results;
}
const unread = { actionTokens: new Int32Array(), observationText: '' };

describe('calculator', () => {
  it('shows the task as a user message, or its own messages', async () => {
    const environment = await makeEnvironment('calculator')();
    const observe = async (prompt: Task['prompt']) =>
      (await environment.reset({ ...task, prompt }, { seed: 1, signal })).observation;
    expect(await observe('1+1')).toEqual([{ role: 'user', content: '1+1' }]);
    expect(await observe([{ role: 'system', content: 's' }])).toEqual([{ role: 'system', content: 's' }]);
  });

  it('rewards the exact answer, with or without a call', async () => {
    expect(await play(['a350'])).toMatchObject([{ reward: 1, done: true, metrics: { tool_use: 0, correct: 1 } }]);
    expect(await play(['c130+220', 'a350'])).toMatchObject([
      { reward: 0, done: false, feedback: say('350'), metrics: { tool_use: 1, correct: 0 } },
      { reward: 1, done: true, metrics: { tool_use: 0, correct: 1 } },
    ]);
  });

  it.each(['a351', 'a350.0', 'a 350', 'a', 'a3500'])('gives nothing for %j', async answer => {
    expect(await play([answer])).toMatchObject([{ reward: 0, done: true, metrics: { correct: 0 } }]);
  });

  it.each(['', '350', 'x', 'c', 'c1/0', 'c1+', 'c9*', 'c999999*9999999', 'A350', ' a350'])(
    'answers e to %j, which does not use up the call',
    async answer => {
      const [refused, called] = await play([answer, 'c1+1']);
      expect(refused).toMatchObject({ reward: 0, done: false, feedback: say('e'), metrics: { tool_use: 0 } });
      expect(called).toMatchObject({ feedback: say('2'), metrics: { tool_use: 1 } });
    },
  );

  it('does not take a cut answer for an answer', async () => {
    expect(
      await play([
        ['a350', 'length'],
        ['c1+1', 'length'],
      ]),
    ).toMatchObject([
      { done: false, feedback: say('e') },
      { done: false, feedback: say('e'), metrics: { tool_use: 0 } },
    ]);
  });

  it('answers as many calls as allowed and counts the use once', async () => {
    expect(await play(['c1+1', 'c2+2'])).toMatchObject([{ feedback: say('2') }, { feedback: say('e') }]);
    const results = await play(['c1+1', 'c2+2', 'c3+3'], { calls: 2 });
    expect(results.map(({ feedback }) => feedback)).toEqual([say('2'), say('4'), say('e')]);
    expect(results.map(({ metrics }) => metrics!.tool_use)).toEqual([1, 0, 0]);
    expect(await play(['c1+1'], { calls: 0 })).toMatchObject([{ feedback: say('e') }]);
  });
});
