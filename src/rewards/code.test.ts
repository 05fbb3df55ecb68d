import { describe, expect, it } from 'vitest';
import { NO_SANDBOX } from '../../tests/support/sandbox.ts';
import { codeReward } from './code.ts';
import type { RewardInput } from './contracts.ts';

const input = (text: string, tests: unknown): RewardInput => ({
  task: { id: 't', prompt: 'p', label: '', metadata: { tests } },
  prompt: 'p',
  text,
  query: `p${text}`,
  label: '',
  episode: { id: 'e', group: 'g', sample: 0, segments: [], steps: [] },
  signal: new AbortController().signal,
});
const tests = [
  { call: 'f', args: [2], returns: 4 },
  { call: 'f', args: [3], returns: 9 },
];

describe.skipIf(NO_SANDBOX)('codeReward', () => {
  const answers = ['```python\ndef f(x):\n  return x * x\n```', 'def f(x): return 4', 'I do not know.'];
  const batch = answers.map(text => input(text, tests));

  it('is 1 for a program that passes every test', async () => {
    const scored = await codeReward({ language: 'python' })(batch);
    expect(scored).toEqual([
      { reward: 1, score: 1, metrics: { tests_passed: 1, tests_timeout: 0 } },
      { reward: 0, score: 0, metrics: { tests_passed: 0.5, tests_timeout: 0 } },
      { reward: 0, score: 0, metrics: { tests_passed: 0, tests_timeout: 0 } },
    ]);
  });

  it('is the share of the tests that pass, where that is asked for', async () => {
    const scored = await codeReward({ language: 'python', credit: 'share' })(batch);
    expect(scored.map(one => (typeof one === 'number' ? one : one.reward))).toEqual([1, 0.5, 0]);
  });

  it('takes tests and programs from where it is told', async () => {
    const reward = codeReward({
      language: 'javascript',
      tests: ({ label }) => [{ stdin: '', stdout: label }],
      extract: text => `console.log(${text})`,
    });
    expect(await reward([{ ...input('6 * 7', undefined), label: '42' }])).toMatchObject([{ reward: 1 }]);
  });
});

it('refuses a task without tests', async () => {
  const reward = codeReward({ language: 'python' });
  await expect(async () => reward([input('x', [])])).rejects.toThrow(/^task t, column tests: /);
});
