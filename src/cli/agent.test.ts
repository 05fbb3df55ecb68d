import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { resolve } from '../config/load.ts';
import { rlOptions } from '../config/rl.ts';
import { validateEpisode } from '../episode/validate.ts';
import { provideModules } from '../modules/load.ts';
import { testContext } from '../testing/executor-context.ts';
import { chooseAgent } from './agent.ts';
import { OWN_PACKAGE } from './own-package.ts';

/** Which agent the command line makes, and what it refuses. */

const cwd = mkdtempSync(join(tmpdir(), 'tokenloop-agent-'));
const task = { id: 't', prompt: [{ role: 'user', content: '2+3' }], label: '5', metadata: {} };
beforeAll(() => provideModules(OWN_PACKAGE));

function choose(...argv: string[]) {
  const needed = ['--actor.model_name_or_path', 'none', '--data.prompt_dataset', 'none'];
  const { values } = resolve(rlOptions, { argv: [...needed, ...argv], cwd });
  return chooseAgent(values, { cwd }, values);
}

async function run(answers: readonly string[], ...argv: string[]) {
  const context = testContext({ answers: (_, i) => answers[i] ?? 'a5' });
  const agent = await choose(...argv);
  const episode = await agent.run(task, context);
  validateEpisode(episode);
  const shown = context.sampler.requests.map(({ tokens }) => context.renderer.decode(tokens, { special: true }));
  return { agent, episode, shown };
}

describe('agent.observation', () => {
  const argv = ['--agent.env', 'calculator', '--agent.observation'];

  it('says what the policy sees of an environment', async () => {
    const lately = [...argv, 'concat_with_action', '--agent.max_history_length', '1', '--agent.episode_tracking'];
    const { episode, shown } = await run(['c1+1', 'c2+3', 'a5'], ...lately);
    expect(episode.metrics).toMatchObject({ episode_return: 1, episode_length: 3 });
    expect(shown[1]).toMatch(/user\n[^<]*c1\+1\n[^<]*<\|im_end\|>\n<\|im_start\|>assistant\n$/);
    expect(shown[2]).toMatch(/c2\+3\n/);
    expect(shown[2]).not.toContain('c1+1');
  });

  it.each([
    [[...argv, 'last', '--agent.max_history_length', '2'], /is for the modes concat\* .*which is last/],
    [[...argv, 'concat', '--agent.search.strategy', 'turns'], /agent\.observation is for .*'tree'/],
    [[...argv, 'concat', '--agent.fold.turns', '2'], /leave one out/],
    [
      ['--reward.remote_url', 'reward.mjs', '--agent.episode_tracking'],
      /agent\.episode_tracking is for .*'single-turn'/,
    ],
  ])('%j is refused', async (argv, message) => {
    await expect(choose(...argv)).rejects.toThrow(message);
  });
});

describe('agent.tools', () => {
  const argv = ['--agent.env', 'calculator', '--agent.tools'];

  it('are interpreters beside an environment', async () => {
    const call = '<javascript>40 + 2</javascript>';
    // Without isolation: the test is of the options, and runs where there is no bubblewrap.
    const sandbox = ['--agent.tool_sandbox', '{isolation: none}', '--agent.tool_reward', '0.25'];
    const { agent, episode, shown } = await run([call, 'a5'], ...argv, '[javascript]', ...sandbox);
    await agent.close?.();
    expect(shown[1]).toContain('Result of javascript: 42');
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0.25, 1]);
    expect(episode.metrics).toMatchObject({ turns: 2, tool_calls: 1, tool_failures: 0 });
  });

  it.each([
    [['--agent.env', 'calculator', '--agent.tool_reward', '1'], /agent\.tool_reward is for agent\.tools/],
    [[...argv, '[javascript]', '--agent.search.strategy', 'turns'], /agent\.tools are for chains .*'tree'/],
    [[...argv, '[ruby]'], /agent\.tools/],
  ])('%j is refused', async (argv, message) => {
    await expect((async () => choose(...argv))()).rejects.toThrow(message);
  });
});

describe('agent.fold and agent.history', () => {
  it('fold the conversation with an environment', async () => {
    const argv = ['--agent.env', 'calculator', '--agent.fold.turns', '1', '--agent.fold.request', 'Sum up.'];
    const { episode, shown } = await run(['c2+3', 'it is 5', 'a5'], ...argv);
    expect(episode).toMatchObject({ outcome: { kind: 'done' }, score: 1, metrics: { turns: 2, folds: 1 } });
    expect(shown[1]).toContain('Sum up.');
    expect(shown[2]).toContain('Summary of what happened so far:\nit is 5');
  });

  it('leave out what the policy thought', async () => {
    const thought = '<think>hm</think>c2+3';
    const plain = await run([thought, 'a5'], '--agent.env', 'calculator');
    const short = await run([thought, 'a5'], '--agent.env', 'calculator', '--agent.history', 'without-reasoning');
    expect(plain.shown[1]).toContain('hm</think>');
    expect(short.shown[1]).toContain('c2+3');
    expect(short.shown[1]).not.toContain('hm</think>');
  });

  it.each([
    [['--agent.env', 'calculator', '--agent.fold.tool'], /an environment has no tools/],
    [['--agent.env', 'calculator', '--agent.fold.request', 'x'], /a number of turns or of tokens/],
    [
      ['--agent.env', 'calculator', '--agent.history', 'calls', '--agent.search.strategy', 'turns'],
      /agent\.history is for chains of turns .*this agent is 'tree'/,
    ],
    [['--reward.remote_url', 'reward.mjs', '--agent.fold.turns', '2'], /agent\.fold is for .*'single-turn'/],
    [['--train.agent_func_path', 'seats.ts', '--agent.fold.turns', '2'], /agent\.fold is for .*'seats'/],
    [['--train.agent_func_path', 'seats.ts', '--agent.search.strategy', 'turns'], /makes trees .*'seats'/],
  ])('%j is refused', async (argv, message) => {
    await expect(choose(...argv)).rejects.toThrow(message);
  });
});

describe('several seats', () => {
  it('come from a file that exports them, which may import this package by its name', async () => {
    const { agent, episode } = await run(['1', '1', '1', '1', '1'], '--train.agent_func_path', 'seats.ts');
    expect(agent.name).toBe('seats');
    expect(episode.outcome.kind).not.toBe('failed');
    expect(new Set(episode.steps.map(({ seat }) => seat))).toEqual(new Set(['first', 'second']));
  });
});

beforeAll(() => {
  writeFileSync(join(cwd, 'reward.mjs'), 'export default inputs => inputs.map(() => 1);\n');
  writeFileSync(
    join(cwd, 'seats.ts'),
    "import { seats } from 'tokenloop';\nimport { nim } from 'tokenloop/envs';\n" +
      "export default seats({ game: nim, seats: { first: 'policy', second: 'policy' } });\n",
  );
});
