import { describe, expect, it } from 'vitest';
import { NO_SANDBOX } from '../../../tests/support/sandbox.ts';
import { multiTurn } from '../../agents/multi-turn.ts';
import type { Task } from '../../episode/task.ts';
import { testContext } from '../../testing/executor-context.ts';
import type { Action, StepResult } from '../contracts.ts';
import { makeEnvironment } from '../registry.ts';

const { signal } = new AbortController();
const tests = [
  { call: 'f', args: [1, 2], returns: 3 },
  { call: 'f', args: [5, 5], returns: 10 },
];
const task = (metadata: object): Task => ({ id: 't', prompt: 'p', label: '', metadata: { ...metadata } });

async function answers(parameters: object, metadata: object, ...texts: string[]): Promise<StepResult[]> {
  const environment = await makeEnvironment('code', { timeoutMs: 5000, ...parameters })();
  await environment.reset(task(metadata), { seed: 1, signal });
  const results: StepResult[] = [];
  for (const actionText of texts) results.push(await environment.step({ actionText } as Action));
  return results;
}
const told = ({ feedback }: StepResult) => (feedback as readonly { content: string }[])[0]!.content;

describe.skipIf(NO_SANDBOX)('code', () => {
  it('rewards a program that passes, and tells of the first test that fails', async () => {
    const right = 'Of course:\n```python\ndef f(a, b):\n  return a + b\n```';
    const results = await answers({ discount: 0.5 }, { tests }, 'def f(a, b): return a - b', 'def f(a): pass', right);
    expect(told(results[0]!)).toBe('Test 1 of 2 failed: f(1, 2) returned -1, expected 3.');
    expect(told(results[1]!)).toMatch(
      /^Test 1 of 2 failed: f\(1, 2\) failed:\nTypeError: .*takes 1 positional argument/,
    );
    expect(results.map(({ reward, done }) => [reward, done])).toEqual([
      [0, false],
      [0, false],
      [0.25, true],
    ]);
    expect(results[2]).toMatchObject({ score: 1, metrics: { solved: 1, solved_first: 0, tests_passed: 1 } });
  });

  it('puts a template around the answer, and is as short as it is asked to be', async () => {
    const template = 'def f(a, b):\n    return {}';
    const results = await answers({ feedback: 'short' }, { tests, template }, 'a*b', "'$&'", 'a+b');
    expect(results.slice(0, 2).map(told)).toEqual(['f(1,2)=3', 'f(1,2)=3']);
    expect(results[2]).toMatchObject({ reward: 1, done: true });
  });

  it('hides tests, and says only that one of them failed', async () => {
    const results = await answers({ shown: 1 }, { tests }, 'def f(a, b): return 3');
    expect(told(results[0]!)).toBe('All tests that are shown pass; one of the others fails.');
  });

  it('gives the share that passes to the last attempt', async () => {
    const [last] = await answers({ attempts: 1, credit: 'share' }, { tests }, 'def f(a, b): return 3');
    expect(last).toMatchObject({ reward: 0.5, score: 0, done: true, metrics: { solved: 0, tests_passed: 0.5 } });
  });

  it('tests what a program prints, in either language', async () => {
    const echo = [{ stdin: '3 4', stdout: '7' }];
    const [first, second] = await answers(
      {},
      { tests: echo },
      'print(input())',
      'print(sum(map(int, input().split())))',
    );
    expect(told(first!)).toBe('Test 1 of 1 failed. Input:\n3 4\nExpected output:\n7\nOutput:\n3 4\n');
    expect(second).toMatchObject({ reward: 1 });
    const [script] = await answers({ language: 'javascript' }, { tests: echo }, 'console.log(3 + 4)');
    expect(script).toMatchObject({ reward: 1 });
  });

  it('tells what a limit has stopped', async () => {
    const stops = await answers({ timeoutMs: 200 }, { tests }, 'def f(a, b):\n  while True: pass');
    expect(told(stops[0]!)).toMatch(/did not end in time/);
    expect(stops[0]!.metrics).toMatchObject({ tests_timeout: 1 });
  });

  it('goes on from a fork as from itself', async () => {
    const environment = await makeEnvironment('code', { attempts: 2 })();
    await environment.reset(task({ tests }), { seed: 1, signal });
    await environment.step({ actionText: 'x' } as Action);
    const fork = await environment.fork!();
    expect(await fork.step({ actionText: 'y' } as Action)).toMatchObject({ done: true, reward: 0 });
    expect(await environment.step({ actionText: 'def f(a, b): return a + b' } as Action)).toMatchObject({ reward: 1 });
  });

  it('fails episodes whose task has no tests that can be read, and says which', async () => {
    const failed = answers({}, { tests: [{ call: 'f()', args: [], returns: 1 }] });
    await expect(failed).rejects.toThrow(/^task t: tests\[0\]/);
    const episode = await multiTurn(makeEnvironment('code')).run(task({}), testContext({ answers: () => 'x' }));
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment' });
  });
});
