import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../envs/tools/define.ts';
import { toTrajectories } from '../episode/trajectory.ts';
import { validateEpisode } from '../episode/validate.ts';
import { testContext } from '../testing/executor-context.ts';
import { turnRows } from '../training/turn-rows.ts';
import { onlyCalls, withoutReasoning } from './folding.ts';
import { type MultiTurnOptions, multiTurn } from './multi-turn.ts';
import { type ToolAgentOptions, toolAgent } from './tools/tool-agent.ts';

const task = { id: 't', prompt: 'p', label: '', metadata: {} };

async function run(answers: readonly string[], options: MultiTurnOptions, steps = 3) {
  const context = testContext({ answers: (_, i) => answers[i]! });
  const executor = multiTurn(
    () => ({
      reset: () => ({ observation: [{ role: 'user', content: 'begin' }] }),
      step: ({ turn }) => ({
        reward: turn,
        done: turn + 1 === steps,
        feedback: [{ role: 'user', content: `f${turn}` }],
      }),
    }),
    options,
  );
  const episode = await executor.run(task, context);
  validateEpisode(episode);
  const rows = toTrajectories(episode);
  return { episode, rows, shown: rows.map(({ tokens }) => context.renderer.decode(tokens, { special: true })) };
}

it('goes on with the beginning and the summary, as parts of one attempt', async () => {
  const { episode, shown } = await run(['a', 'b', 'SUMMARY', 'c'], { fold: { turns: 2, request: 'sum up' } });
  expect(shown).toHaveLength(2);
  expect(shown[0]).toMatch(/begin.*a<.*f0.*b<.*f1.*sum up.*SUMMARY/s);
  expect(shown[1]).toMatch(/begin.*SUMMARY.*c/s);
  expect(shown[1]).not.toMatch(/f0|f1|sum up/);
  expect(episode.leaves ?? 'parts').toBe('parts');
  expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 1, 0, 2]);
  expect(episode.metrics).toMatchObject({ turns: 3, folds: 1 });
});

it('folds when the context has grown to a number of tokens, never twice without a turn between', async () => {
  const { episode } = await run(['a', 'S', 'b', 'S', 'c'], { fold: { tokens: 1 } });
  expect(episode.outcome).toEqual({ kind: 'done' });
  expect(episode.metrics).toMatchObject({ turns: 3, folds: 2 });
  await expect(run([], { fold: {} })).rejects.toThrow(/a number of turns or of tokens/);
});

it('shows later turns a part of each answer, each turn in the context it was sampled in', async () => {
  const answers = ['<think>x</think>a', '<think>y</think>b', '<think>z</think>c'];
  const { rows, shown } = await run(answers, { keep: withoutReasoning });
  expect(shown).toHaveLength(3);
  expect(shown[2]).toMatch(/begin.*a<.*f0.*b<.*f1.*<think>z<\/think>c/s);
  expect(shown[2]).not.toMatch(/<think>[xy]/);
  expect(turnRows(rows)).toHaveLength(3);
});

describe('the tool summarize', () => {
  const call = (name: string, given: unknown) => `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;
  const look = defineTool({ name: 'look', description: '', parameters: z.object({}), execute: () => 'a wall' });

  async function play(answers: readonly string[], options: Partial<ToolAgentOptions> = {}) {
    const context = testContext({ answers: (_, i) => answers[i]!, limits: { maxNewTokens: 400 } });
    const agent = toolAgent({ tools: [look], dialect: 'hermes', reward: () => [1], fold: { tool: true }, ...options });
    const episode = await agent.run(task, context);
    validateEpisode(episode);
    const rows = toTrajectories(episode);
    return { episode, shown: rows.map(({ tokens }) => context.renderer.decode(tokens, { special: true })) };
  }

  it('is offered, and folds what came before into a new segment', async () => {
    const { episode, shown } = await play([call('look', {}), call('summarize', { summary: 'WALLS' }), 'done']);
    expect(shown).toHaveLength(2);
    expect(shown[0]).toMatch(/"name":"summarize".*user\np<.*"look".*a wall.*"summary":"WALLS"/s);
    expect(shown[1]).toMatch(/"name":"summarize".*user\np<.*Summary of what happened so far:\nWALLS.*done/s);
    expect(shown[1]).not.toContain('a wall');
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.metrics).toMatchObject({ turns: 3, tool_calls: 2, tool_failures: 0, folds: 1 });
    expect(episode.leaves ?? 'parts').toBe('parts');
  });

  it('is refused beside other calls and without a summary, and nothing is folded', async () => {
    const both = call('look', {}) + call('summarize', { summary: 'x' });
    const { episode, shown } = await play([both, call('summarize', {}), 'done']);
    expect(shown).toHaveLength(1);
    expect(shown[0]).toMatch(/a wall.*summarize must be the only call of an answer.*arguments of summarize: summary/s);
    expect(episode.metrics).toMatchObject({ tool_failures: 2 });
    expect(episode.metrics.folds).toBeUndefined();
  });

  it('is the name of one tool only, and of none that an environment has', () => {
    const own = defineTool({ ...look, name: 'summarize' });
    expect(() => toolAgent({ tools: [own], reward: () => [1], fold: { tool: true } })).toThrow(/two tools are named/);
    const environment = () => ({ reset: () => ({ observation: '' }), step: () => ({ reward: 0, done: true }) });
    expect(() => multiTurn(environment, { fold: { tool: true } })).toThrow(/has no tools/);
    expect(() => multiTurn(environment, { fold: { tool: false, request: 'x' } })).toThrow(/folding needs/);
  });

  it('leaves room for a history of calls and results alone', async () => {
    const said = `<think>hm</think>I look. ${call('look', {})}`;
    const { shown } = await play([said, 'done'], { fold: undefined, keep: onlyCalls });
    expect(shown).toHaveLength(2);
    expect(shown[0]).toContain('hm</think>I look.');
    expect(shown[1]).toMatch(
      /user\np<.*assistant\n<tool_call>\{"name":"look","arguments":\{\}\}<\/tool_call><.*a wall.*done/s,
    );
    expect(shown[1]).not.toContain('I look');
  });
});
