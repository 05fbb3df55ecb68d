import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Task } from '../episode/task.ts';
import { validateEpisode } from '../episode/validate.ts';
import { testContext } from '../testing/executor-context.ts';
import { loadAgentFile } from './file.ts';
import { multiTurn } from './multi-turn.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tokenloop-agents-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const task: Task = { id: 't', prompt: 'Q', label: 'L', metadata: { level: 3 } };

async function run(name: string, text: string, answers: readonly string[]) {
  writeFileSync(join(directory, name), text);
  const executor = await loadAgentFile(name, multiTurn, directory);
  const context = testContext({ answers: (_, index) => answers[index] ?? '?' });
  const episode = await executor.run(task, context);
  validateEpisode(episode, { vocabularySize: context.renderer.vocabularySize });
  return { episode, context };
}

describe('loadAgentFile', () => {
  it('runs an environment class with the names of OpenRLHF', async () => {
    const { episode, context } = await run(
      'openrlhf.ts',
      `interface States { observation: string; label: string; [other: string]: unknown }
export class AgentInstance {
  private turns: number = 0;
  reset(states: States) {
    return { observation: states.observation + states.label };
  }
  step(states: Record<string, any>) {
    this.turns += 1;
    const rewards = [states.action_text === 'b' && states.observation_text.endsWith('!') ? 1 : 0.25];
    return {
      rewards,
      scores: [this.turns],
      environment_feedback: '!',
      done: this.turns === 2,
      sampling_params: { ...states.sampling_params, max_tokens: 7, temperature: 0.5, top_p: 0.9 },
      extra_logs: { turns_taken: [this.turns], note: 'text' },
      environment_images: { mediaType: 'image/png', data: new Uint8Array([1]) },
    };
  }
}
`,
      ['a', 'b'],
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0.25, 1]);
    expect(episode.score).toBe(2);
    expect(episode.steps.map(({ metrics }) => metrics)).toEqual([{ turns_taken: 1 }, { turns_taken: 2 }]);
    expect(context.sampler.requests[1]!.params).toMatchObject({ maxTokens: 7, temperature: 0.5, topP: 0.9 });
    expect(context.sampler.requests[1]!.images).toHaveLength(1);
  });

  it('records a program that is exported as agent', async () => {
    const program = `export const agent = async ({ task, baseURL, apiKey }: { task: { label: string }; baseURL: string; apiKey: string }) => {
      const reply = await fetch(baseURL + '/chat/completions', {
        method: 'POST',
        headers: { authorization: 'Bearer ' + apiKey },
        body: JSON.stringify({ model: 'policy', messages: [{ role: 'user', content: 'q' }] }),
      });
      return (await reply.json()).choices[0].message.content === task.label ? 1 : 0;
    };`;
    const { episode } = await run('program.ts', program, ['L']);
    expect(episode).toMatchObject({ outcome: { kind: 'done' }, score: 1, metrics: { turns: 1 } });
    await expect(run('no-program.ts', 'export const agent = 5;', [])).rejects.toThrow(
      'agent is 5, and must be a function',
    );
  });

  it('prefers our own names where both are given', async () => {
    const text = `export default () => ({
  reset: () => ({ observation: 'Q' }),
  step: () => ({ reward: 1, rewards: 5, done: true, score: 2, scores: 7 }),
});\n`;
    const { episode } = await run('both.mjs', text, ['a']);
    expect([episode.steps[0]!.reward, episode.score]).toEqual([1, 2]);
  });

  it.each([
    ['object.mjs', 'export default { name: "mine", run };\n'],
    ['class.mjs', 'export class AgentExecutor { name = "mine"; run(task, context) { return run(task, context); } }\n'],
  ])('takes an executor: %s', async (name, text) => {
    const body = `async function run(task, { id, group, sample }) {
  return { id, task, group, sample, segments: [], steps: [], score: 0, metrics: {},
    outcome: { kind: 'failed', failure: 'provider', message: 'as planned', step: 0 } };
}\n`;
    expect((await run(name, body + text, [])).episode.outcome).toMatchObject({ message: 'as planned' });
  });

  it.each<[string, string, string | RegExp]>([
    [
      'half.ts',
      'export default class Half {\n  reset() { return { observation: "Q" }; }\n}\n',
      /half\.ts: the class Half has no method step, and no method run \(it exports default \(line 1\)\)/,
    ],
    ['none.ts', 'const a = 1;\nexport const other: number = a;\n', /none\.ts: it exports nothing .*other \(line 2\)/],
    ['number.mjs', 'export default 7;\n', /it exports 7 as default where an agent is expected/],
    [
      'constructor.ts',
      'export class AgentExecutor {\n  constructor() {\n    throw new TypeError("no key");\n  }\n  run() {}\n}\n',
      /constructor\.ts:3:\d+: no key/,
    ],
  ])('refuses %s', async (name, text, message) => {
    writeFileSync(join(directory, name), text);
    await expect(loadAgentFile(name, multiTurn, directory)).rejects.toThrow(message);
  });

  it('makes a failed episode of an environment that gives something else', async () => {
    const { episode } = await run('wrong.mjs', 'export default () => 5;\n', []);
    expect(episode.outcome).toMatchObject({
      kind: 'failed',
      failure: 'environment',
      message: expect.stringContaining('wrong.mjs: its function gave 5; it must give an object with reset and step'),
    });
    const step = await run(
      'step.mjs',
      'export default () => ({ reset: () => ({ observation: "Q" }), step: () => ({ rewards: "high", done: true }) });\n',
      ['a'],
    );
    expect(step.episode.outcome).toMatchObject({ kind: 'failed', message: expect.stringContaining('reward') });
  });
});
