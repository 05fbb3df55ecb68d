import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { multiTurn } from '../src/agents/multi-turn.ts';
import { makeEnvironment } from '../src/envs/registry.ts';
import type { Message, Task } from '../src/episode/task.ts';
import { judge, type TestCase } from '../src/sandbox/judge.ts';
import { openSandbox } from '../src/sandbox/sandbox.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { NO_SANDBOX } from './support/sandbox.ts';

/** examples/code-fixing: the data is what its script says it is, and the environment runs it. */

interface Row {
  readonly prompt: string;
  readonly solution: string;
  readonly template: string;
  readonly tests: readonly Extract<TestCase, { readonly call: string }>[];
}
type Part = (row: Row) => string;
interface Demonstration {
  readonly messages: readonly Message[];
}
function rows<T>(name: string): T[] {
  const text = readFileSync(new URL(`../examples/code-fixing/${name}`, import.meta.url), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as T);
}
const train = rows<Row>('train.jsonl');
const test = rows<Row>('test.jsonl');
const demonstrations = rows<Demonstration>('demonstrations.jsonl');
const [signatureOf, wrongOf] = [0, 1].map(
  i =>
    ({ prompt }: Row) =>
      prompt.split(' ')[i]!,
) as [Part, Part];
const toTask = (row: Row): Task => ({ id: row.prompt, prompt: row.prompt, label: '', metadata: { ...row } });

describe('examples/code-fixing', () => {
  it('shows a function by its name, with another operator', () => {
    expect([train.length, test.length]).toEqual([440, 160]);
    for (const row of [...train, ...test]) {
      const [, name, first, second] = /^(\w+)\((\w),(\w)\)$/.exec(signatureOf(row))!;
      expect(row.template).toBe(`def ${name}(${first}, ${second}):\n    return {}`);
      for (const program of [row.solution, wrongOf(row)]) {
        expect([program[0], program.at(-1)]).toEqual([first, second]);
      }
      expect(row.solution).not.toBe(wrongOf(row));
      expect(new Set(row.tests.map(({ call }) => call))).toEqual(new Set([name]));
    }
  });

  it('holds out parameters that do not occur together in training', () => {
    const parameters = (rows: readonly Row[]) => new Set(rows.map(({ solution }) => solution.replace(/[^a-z]/g, '')));
    expect(parameters(train).size).toBe(22);
    expect([...parameters(test)].filter(pair => parameters(train).has(pair))).toEqual([]);
  });

  it('has demonstrations that are right in four attempts of ten, and at random else', () => {
    const solutions = new Map(train.map(({ prompt, solution }) => [prompt, solution]));
    const right = demonstrations.filter(({ messages }) => messages[1]!.content === solutions.get(messages[0]!.content));
    expect(Math.max(...demonstrations.map(({ messages }) => messages.length))).toBeLessThanOrEqual(6);
    // 0.4 and a fifth of the rest; three standard errors of 3000 draws are 0.027.
    expect(Math.abs(right.length / demonstrations.length - 0.52)).toBeLessThan(0.027);
  });
});

describe.skipIf(NO_SANDBOX)('examples/code-fixing in the sandbox', () => {
  const sandbox = openSandbox({ timeoutMs: 20_000 });
  afterAll(() => sandbox.close());

  it('is solved by its solutions, and not by the programs that are shown', async () => {
    // One interpreter for many rows, so that a test does not start a thousand; names tell the functions apart.
    const few = [...train, ...test].filter((_, i) => i % 7 === 0);
    const source = few.flatMap((row, i) =>
      [row.solution, wrongOf(row)].map((answer, which) => {
        const program = row.template.replace('{}', () => answer);
        return program.replace(/^def \w+/, () => `def ${which === 0 ? 'right' : 'wrong'}${i}`);
      }),
    );
    const cases = few.flatMap((row, i) =>
      ['right', 'wrong'].flatMap(which => row.tests.map(one => ({ ...one, call: `${which}${i}` }))),
    );
    const verdicts = await judge(sandbox, { language: 'python', source: source.join('\n') }, cases);
    for (const [i] of few.entries()) {
      const passed = (which: string) =>
        verdicts.filter((_, at) => cases[at]!.call === `${which}${i}`).map(one => one.passed);
      expect(passed('right')).toEqual([true, true, true, true]);
      expect(passed('wrong')).toContain(false);
    }
  });

  it('is played by the environment as the demonstrations show it', async () => {
    const parameters = { attempts: 3, discount: 0.5, feedback: 'short', timeoutMs: 20_000 };
    const byPrompt = new Map([...train, ...test].map(row => [row.prompt, row]));
    const twoTries = demonstrations.filter(({ messages }) => messages.length === 4);
    let played = 0;
    for (const { messages } of twoTries.slice(0, 6)) {
      const row = byPrompt.get(messages[0]!.content)!;
      const answers = messages.filter(({ role }) => role === 'assistant').map(({ content }) => content);
      // Some are never right.
      if (answers.at(-1) !== row.solution) continue;
      const context = testContext({ answers: (_, index) => answers[index]!, limits: { callTimeoutMs: 20_000 } });
      const episode = await multiTurn(makeEnvironment('code', parameters)).run(toTask(row), context);
      expect(episode).toMatchObject({ outcome: { kind: 'done' }, score: 1, metrics: { solved: 1, solved_first: 0 } });
      const shown = context.renderer.decode(context.sampler.requests.at(-1)!.tokens, { special: true });
      expect(shown).toBe(context.renderer.decode(context.renderer.prompt(messages.slice(0, -1)), { special: true }));
      played += 1;
    }
    expect(played).toBeGreaterThan(2);
  });
});
