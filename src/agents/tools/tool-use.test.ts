import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Environment } from '../../envs/contracts.ts';
import { resourcePool } from '../../envs/resources/pool.ts';
import { defineTool } from '../../envs/tools/define.ts';
import { validateEpisode } from '../../episode/validate.ts';
import { testContext } from '../../testing/executor-context.ts';
import { type MultiTurnOptions, multiTurn } from '../multi-turn.ts';
import type { ToolUseOptions } from './tool-use.ts';

const told = (text: string) => [{ role: 'user', content: text }];

/** Answers every action with its number; ends with the action `end`. */
function counting(as: (text: string) => string | ReturnType<typeof told>, suffix = ''): Environment {
  let turn = 0;
  return {
    reset: () => ({ observation: as(`Go.${suffix}`), ...(suffix ? { suffix } : {}) }),
    step: ({ actionText }) => {
      turn += 1;
      return { reward: 1, done: actionText === 'end', feedback: as(`Step ${turn}.`) };
    },
  };
}

async function run(environment: Environment, answers: readonly string[], options: MultiTurnOptions) {
  const context = testContext({
    answers: (_, i) => answers[i] ?? 'end',
    limits: { maxNewTokens: 200, maxTurns: 20 },
  });
  const executor = multiTurn(() => environment, options);
  const episode = await executor.run({ id: 't', prompt: '', label: '', metadata: {} }, context);
  validateEpisode(episode);
  await executor.close?.();
  const seen = context.sampler.requests.map(({ tokens }) => context.renderer.decode(tokens, { special: true }));
  return { episode, seen };
}

const echo = defineTool({
  name: 'echo',
  description: 'Says it again.',
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => ({ content: text, failed: text === 'bad', done: text === 'over' }),
});
const using = (options: Partial<ToolUseOptions> = {}) => ({ tools: { tools: [echo], ...options } });

/** Of `tools/golden/tool_use.py`, where the format is told. */
const golden = JSON.parse(
  readFileSync(new URL('../../../tests/goldens/games/tool-use.json', import.meta.url), 'utf8'),
) as {
  readonly answers: readonly string[];
  readonly rewards: readonly number[];
  readonly results: readonly { readonly text: string; readonly failed: boolean }[];
  readonly shown: readonly string[];
  readonly uses: number;
  readonly successes: number;
};

it('reads calls, cuts answers, and gives results and rewards as the tool wrapper of GEM does', async () => {
  const results = [...golden.results];
  const python = defineTool({
    name: 'python',
    description: '',
    parameters: z.object({ code: z.string() }),
    execute: () => {
      const { text, failed } = results.shift()!;
      return { content: text, failed };
    },
  });
  const { episode, seen } = await run(
    counting(text => text),
    golden.answers,
    {
      observations: { mode: 'concat_with_action' },
      tools: {
        tools: [python],
        reward: 0.05,
        successReward: 0.25,
        maxUses: 4,
        instructions: 'Use Python.',
        tell: ({ content }) => content,
      },
    },
  );
  const ours = 'That was the last call of a tool; answer without one now.';
  expect(seen).toEqual(golden.shown.map(text => text.replace('LAST', ours)));
  const rewards = episode.steps.map(({ reward }) => reward);
  expect(rewards.slice(0, -1)).toEqual(golden.rewards.map(reward => expect.closeTo(reward, 12)));
  const { uses, successes } = golden;
  expect(episode.metrics).toMatchObject({ tool_calls: uses, tool_failures: uses - successes });
});

describe('tools beside an environment', () => {
  it('are explained before the state of the first observation, and answer instead of the environment', async () => {
    const { episode, seen } = await run(counting(told, 'Board'), ['<echo>hi</echo>', '<echo>bad</echo>'], using());
    expect(seen[0]).toContain('Go.\nBefore you answer');
    expect(seen[0]).toContain('<echo>text</echo>: Says it again.\nBoard<|im_end|>');
    expect(seen[1]).toContain('user\nResult of echo: hi\n<|im_end|>');
    expect(seen[2]).toContain('Result of echo: bad');
    expect(episode).toMatchObject({
      outcome: { kind: 'done' },
      metrics: { turns: 3, tool_calls: 2, tool_failures: 1 },
    });
    expect(episode.steps.map(({ reward, toolFailed }) => [reward, toolFailed ?? false])).toEqual([
      [0, false],
      [0, true],
      [1, false],
    ]);
  });

  it('are called in a dialect, end the episode when they say so, and not by an answer that was cut', async () => {
    const call = (text: string) => `<tool_call>{"name": "echo", "arguments": {"text": "${text}"}}</tool_call>`;
    const options = using({ calls: 'hermes', reward: 0.5 });
    const { episode, seen } = await run(counting(told), [call('a') + call('b'), call('over')], options);
    expect(seen[0]).toContain('"name":"echo"');
    expect(seen[1]).toContain('Result of echo: a\nResult of echo: b\n');
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0.5, 0.5]);
    const cut = await run(counting(told), ['<echo>a</echo>'], { ...using(), maxNewTokens: 15 });
    expect(cut.episode.metrics).toMatchObject({ tool_calls: 1, turns: 2 });
    const shorter = await run(counting(told), ['<echo>a</echo>'], { ...using(), maxNewTokens: 14 });
    expect(shorter.episode.metrics).toMatchObject({ tool_calls: 0, turns: 2 });
  });

  it('give back what they hold, and close it with the executor', async () => {
    const log: string[] = [];
    const pool = resourcePool(
      { name: 'box', create: () => log.push('made'), destroy: () => void log.push('gone') },
      { max: 1 },
    );
    const { episode } = await run(counting(told), ['<echo>a</echo>'], using({ tools: [{ ...echo, pool }] }));
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(log).toEqual(['made', 'gone']);
  });

  it('are refused where they cannot be called', () => {
    const two = defineTool({ ...echo, name: 'two', parameters: z.object({ a: z.string(), b: z.string() }) });
    const make = (options: Partial<ToolUseOptions>) => () => multiTurn(() => counting(told), using(options));
    expect(make({ tools: [two] })).toThrow(/two does not take one argument/);
    expect(make({ tools: [echo, echo] })).toThrow(/names must differ/);
    expect(make({ calls: 'smoke' })).toThrow(/unknown tool dialect "smoke"/);
    expect(make({ maxUses: 0 })).toThrow(/at most 0 uses/);
  });
});
