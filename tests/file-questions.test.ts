import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadAgentFile } from '../src/agents/file.ts';
import { multiTurn } from '../src/agents/multi-turn.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { root } from './support/process.ts';

/** examples/file-questions: its data, and its agent with the server of the MCP project. */

interface Row {
  readonly prompt: string;
  readonly label: string;
}
const folder = join(root, 'examples/file-questions');
const rows = (name: string) =>
  readFileSync(join(folder, name), 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Row);
const [train, test] = [rows('train.jsonl'), rows('test.jsonl')];

it('asks about files that are there, and in the test about none of the training', () => {
  expect([train.length, test.length]).toEqual([300, 100]);
  for (const { prompt, label } of [...train, ...test]) {
    expect(readFileSync(join(folder, 'files', `${prompt}.txt`), 'utf8')).toBe(`${label}\n`);
  }
  expect(new Set([...train, ...test].map(({ prompt }) => prompt)).size).toBe(400);
});

// The example speaks to the package by its name, as a user's file does.
it.skipIf(!existsSync(join(root, 'dist/index.js')))(
  'reads through the server, and rewards the right number',
  async () => {
    const agent = await loadAgentFile(join(folder, 'agent.ts'), multiTurn, root);
    const { prompt, label } = test[0]!;
    const play = async (...answers: string[]) => {
      const context = testContext({ answers: (_, index) => answers[index] ?? 'x', limits: { callTimeoutMs: 20_000 } });
      const task = { id: 't', prompt: [{ role: 'user', content: prompt }], label, metadata: {} };
      const { outcome, steps, metrics } = await agent.run(task, context);
      expect(outcome).toEqual({ kind: 'done' });
      const told = context.renderer.decode(context.sampler.requests.at(-1)!.tokens, { special: true });
      return { reward: steps.at(-1)!.reward, read: metrics.read, told };
    };
    const right = await play(`c${prompt}`, `a${label}`);
    expect(right).toMatchObject({ reward: 1, read: 1 });
    expect(right.told).toContain(label);
    expect(await play('c../../package', `a${label}`)).toMatchObject({ reward: 1, read: 0 });
    expect(await play('a0')).toMatchObject({ reward: 0 });
    await agent.close!();
  },
);
