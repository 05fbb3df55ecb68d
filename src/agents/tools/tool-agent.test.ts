import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DEFAULT_SAMPLING } from '../../engines/contracts.ts';
import { resourcePool } from '../../envs/resources/pool.ts';
import type { Tool } from '../../envs/tools/contracts.ts';
import { defineTool } from '../../envs/tools/define.ts';
import { EpisodeError } from '../../episode/failure.ts';
import type { Task } from '../../episode/task.ts';
import { toTrajectories } from '../../episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../../episode/validate.ts';
import type { RewardInput } from '../../rewards/contracts.ts';
import { lockstep } from '../../rollout/admission.ts';
import { runGroups } from '../../rollout/groups.ts';
import { byteRenderer } from '../../testing/byte-tokenizer.ts';
import { type TestContextOptions, testContext } from '../../testing/executor-context.ts';
import { scriptedSampler } from '../../testing/scripted-sampler.ts';
import { chatRenderer } from '../../text/chat-renderer.ts';
import { chatTemplate } from '../../text/template.ts';
import { type ToolAgentOptions, toolAgent } from './tool-agent.ts';

const task: Task = { id: 't', prompt: '2+3', label: '5', metadata: {} };

/** A template that shows tools and results as Qwen's does. */
const bytes = byteRenderer();
const hermesRenderer = chatRenderer({
  codec: bytes,
  stopTokens: bytes.stopTokens,
  template: chatTemplate(
    '{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool.function.name }} {% endfor %}as <tool_call><|im_end|>\n{% endif %}' +
      '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}' +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  ),
});

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});
const written = (name: string, given: unknown) =>
  `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;

async function run(
  lines: readonly string[],
  options: Partial<ToolAgentOptions> = {},
  context: TestContextOptions = {},
  of: Task = task,
) {
  const scored: RewardInput[] = [];
  const reward: ToolAgentOptions['reward'] = batch => {
    scored.push(...batch);
    return batch.map(({ text, label }) => (text === label ? 1 : 0));
  };
  const agent = toolAgent({ tools: [add], reward, ...options });
  const test = testContext({
    renderer: hermesRenderer,
    answers: (_, index) => lines[index] ?? 'out of lines',
    ...context,
    limits: { maxNewTokens: 400, ...context.limits },
  });
  const episode = await agent.run(of, test);
  validateEpisode(episode, { vocabularySize: hermesRenderer.vocabularySize });
  for (const trajectory of toTrajectories(episode)) validateTrajectory(trajectory);
  const seen = test.sampler.requests.map(({ tokens }) => hermesRenderer.decode(tokens, { special: true }));
  return { episode, seen, scored, agent, test };
}

/** What the policy was told after its first answer. */
function told(seen: readonly string[]): string[] {
  return [...seen[1]!.matchAll(/<\|im_start\|>(?:tool|user)\n([\s\S]*?)<\|im_end\|>/g)]
    .map(match => match[1]!)
    .slice(1);
}

describe('toolAgent', () => {
  it('shows the tools, answers a call and scores the final answer', async () => {
    const { episode, seen, scored } = await run([`I add. ${written('add', { a: 2, b: 3 })}`, '5']);
    expect(seen[0]).toBe(
      '<|im_start|>system\nadd as <tool_call><|im_end|>\n<|im_start|>user\n2+3<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(seen[1]).toBe(
      `${seen[0]}I add. <tool_call>{"name":"add","arguments":{"a":2,"b":3}}</tool_call><|im_end|>\n` +
        '<|im_start|>tool\n5<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 1]);
    expect(episode.metrics).toEqual({ turns: 2, tool_calls: 1, tool_failures: 0 });
    expect(scored).toMatchObject([
      { text: '5', calls: [{ turn: 0, name: 'add', arguments: { a: 2, b: 3 }, content: '5', failed: false }] },
    ]);
    expect(toTrajectories(episode)).toHaveLength(1);
  });

  it('adds rewards of steps to what the steps earned, and the rest of the reward to the last', async () => {
    const lines = [`I add. ${written('add', { a: 2, b: 3 })}`, '5'];
    const reward: ToolAgentOptions['reward'] = ([input]) => [
      { reward: 2, steps: input!.episode.steps.map((_, k) => (k + 1) / 4), tokens: [0.5, 0.25] },
    ];
    const { episode } = await run(lines, { reward });
    expect(episode.steps.map(step => [step.reward, step.tokenRewards])).toEqual([
      [0.25, undefined],
      [1.75, [0.5, 0.25]],
    ]);
    expect(episode.score).toBe(2);
    const short = await run(lines, { reward: () => [{ steps: [1] }] });
    expect(short.episode.outcome).toMatchObject({
      kind: 'failed',
      failure: 'reward',
      message: 'reward: steps: expected 2 rewards, one for each step of the episode, got 1',
    });
  });

  it('makes several calls at once and keeps their order', async () => {
    const started: string[] = [];
    const wait = defineTool({
      name: 'wait',
      description: 'Waits for the other.',
      parameters: z.object({ id: z.string() }),
      execute: async ({ id }) => {
        started.push(id);
        // The first can only end when the second has begun.
        while (started.length < 2) await Promise.resolve();
        return { content: `${id} done`, metrics: { waited: 1 } };
      },
    });
    const calls = written('wait', { id: 'x' }) + written('wait', { id: 'y' });
    const { seen, episode } = await run([calls, '5'], { tools: [wait] });
    expect(told(seen)).toEqual(['x done', 'y done']);
    expect(episode.metrics).toMatchObject({ tool_calls: 2, waited: 2 });
  });

  it.each<[string, string, string, Partial<ToolAgentOptions>]>([
    ['a call that is no JSON', '<tool_call>{"name": add}</tool_call>', 'Error: the call is not valid JSON', {}],
    ['an unknown tool', written('sub', {}), 'Error: there is no tool "sub"; there are: add', {}],
    ['wrong arguments', written('add', { a: 'x' }), 'Error: arguments of add: a: ', {}],
    [
      'a tool that throws',
      written('bad', {}),
      'Error: divided by zero',
      {
        tools: [
          defineTool({
            name: 'bad',
            description: '',
            parameters: z.object({}),
            execute: () => Promise.reject(new Error('divided by zero')),
          }),
        ],
      },
    ],
    [
      'a tool that hangs',
      written('slow', {}),
      'Error: slow gave no result within 5 ms',
      {
        tools: [
          defineTool({
            name: 'slow',
            description: '',
            parameters: z.object({}),
            timeoutMs: 5,
            execute: (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
          }),
        ],
      },
    ],
  ])('tells the policy about %s, and goes on', async (_, line, message, options) => {
    const { episode, seen, scored } = await run([line, '5'], options);
    expect(told(seen)).toEqual([expect.stringContaining(message)]);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps.map(({ toolFailed, reward }) => [toolFailed, reward])).toEqual([
      [true, 0],
      [false, 1],
    ]);
    expect(episode.metrics.tool_failures).toBe(1);
    expect(scored[0]!.calls![0]!.failed).toBe(true);
  });

  it('answers calls beyond maxCalls with an error', async () => {
    const { seen } = await run([written('add', { a: 1, b: 1 }).repeat(3), '5'], { maxCalls: 2 });
    expect(told(seen)).toEqual(['2', '2', 'Error: at most 2 calls are made for one answer']);
  });

  it('cuts a long result visibly, and keeps its ends', async () => {
    const long = defineTool({
      name: 'long',
      description: '',
      parameters: z.object({}),
      execute: () => `A${'x'.repeat(10_000)}Z`,
    });
    const { seen } = await run([written('long', {}), '5'], { tools: [long], maxResultLength: 100 });
    const [result] = told(seen);
    expect(result).toMatch(/^Ax+\n\[… 99\d\d characters left out …\]\nx+Z$/);
    expect(result!.length).toBeLessThanOrEqual(100);
    const left = Number(/(\d+) characters/.exec(result!)![1]);
    expect(left + result!.replace(/\n\[.*\]\n/, '').length).toBe(10_002);
  });

  it('ends with a tool that says so, and adds its reward', async () => {
    const submit = defineTool({
      name: 'submit',
      description: '',
      parameters: z.object({ answer: z.string() }),
      execute: ({ answer }) => ({ content: 'thanks', done: true, reward: answer === '5' ? 2 : 0 }),
    });
    const { episode, seen } = await run([`5${written('submit', { answer: '5' })}`], { tools: [submit] });
    expect(seen).toHaveLength(1);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps[0]!.reward).toBe(3);
  });

  it('ends truncated by turns, by length and by tokens, and is scored', async () => {
    const call = written('add', { a: 1, b: 1 });
    const turns = await run([call, call, call], { maxTurns: 2 });
    expect(turns.episode.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
    const length = await run([`${call} and so on`], { maxNewTokens: 20 });
    expect(length.episode.outcome).toEqual({ kind: 'truncated', reason: 'length' });
    expect(length.episode.metrics.tool_calls).toBe(0);
    const tokens = await run([call], {}, { limits: { maxTokens: 120 } });
    expect(tokens.episode.outcome).toEqual({ kind: 'truncated', reason: 'tokens' });
    for (const { scored } of [turns, length, tokens]) expect(scored).toHaveLength(1);
  });

  it('marks an answer that neither says nor calls anything', async () => {
    const { episode } = await run(['']);
    expect(episode.steps[0]!.isVoid).toBe(true);
  });

  it('describes the tools in a system message where the template shows none, in ReAct', async () => {
    const lines = ['Thought: add.\nAction: add\nAction Input: {"a": 2, "b": 3}', 'Final Answer: 5'];
    const system: Task = {
      ...task,
      prompt: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: '2+3' },
      ],
    };
    const { seen, episode, test } = await run(lines, { system: 'Work.' }, { renderer: byteRenderer() }, system);
    expect(seen[0]).toMatch(
      /^<\|im_start\|>system\nWork\.\n\nBe brief\.\n\nYou can call these tools[\s\S]*"name":"add"/,
    );
    expect(told(seen).at(-1)).toBe('Observation: 5');
    expect(test.sampler.requests[0]!.params.stopStrings).toEqual(['\nObservation:']);
    expect(episode.steps.at(-1)!.reward).toBe(1);
  });

  it('keeps a resource for the episode, shows it to the reward and gives it back', async () => {
    const log: string[] = [];
    const pool = resourcePool<{ text: string }>({
      name: 'notes',
      create: () => ({ text: '' }),
      destroy: ({ text }) => void log.push(`destroyed with ${text}`),
    });
    const note = defineTool<z.ZodObject<{ text: z.ZodString }>, { text: string }>({
      name: 'note',
      description: '',
      parameters: z.object({ text: z.string() }),
      pool,
      execute: ({ text }, { resource }) => {
        resource.text += text;
        return resource.text;
      },
    });
    const { scored, episode, agent } = await run(
      [written('note', { text: 'a' }), written('note', { text: 'b' }), 'end'],
      {
        tools: [note],
        reward: ([input]) => {
          log.push(`scored ${(input!.resources!.notes as { text: string }).text}`);
          return [1];
        },
      },
    );
    expect(scored).toEqual([]);
    expect(episode.score).toBe(1);
    expect(log).toEqual(['scored ab', 'destroyed with ab']);
    expect(pool.alive).toBe(0);
    await agent.close!();
    await expect(pool.acquire('x', new AbortController().signal)).rejects.toThrow('closed');
  });

  it.each<[string, Partial<Tool>, string, string]>([
    [
      'a tool reports that it is broken',
      { execute: () => Promise.reject(new EpisodeError('tool', 'the database is gone')) },
      'tool',
      'the database is gone',
    ],
    [
      'a resource cannot be had',
      { pool: resourcePool({ name: 'gpu', create: () => Promise.reject(new Error('none left')) }) },
      'tool',
      'tool add: its resource gpu: none left',
    ],
    ['a tool returns a result of the wrong shape', { execute: () => ({ content: 7 }) }, 'tool', 'content'],
  ])('fails the episode when %s', async (_, change, failure, message) => {
    const outcome = (await run([written('add', { a: 1, b: 1 }), '5'], { tools: [{ ...add, ...change }] })).episode
      .outcome;
    expect(outcome).toMatchObject({ kind: 'failed', failure, message: expect.stringContaining(message) });
  });

  it('refuses two tools of one name and names or parameters that cannot be shown', () => {
    const reward = () => [0];
    expect(() => toolAgent({ tools: [add, add], reward })).toThrow('two tools are named "add"');
    expect(() => defineTool({ ...add, name: 'a b' })).toThrow(/tool "a b": a name is/);
    expect(() => defineTool({ ...add, parameters: z.string() })).toThrow(
      /its parameters are "string"; give a z.object/,
    );
    expect(() => defineTool({ ...add, parameters: z.object({ f: z.function() as never }) })).toThrow(/cannot be shown/);
    expect(() => toolAgent({ tools: [add], reward, dialect: 'x' })).toThrow('unknown tool dialect "x"');
  });

  it('lets episodes that are sampled in rounds share a pool that is smaller than their number', async () => {
    const pool = resourcePool({ name: 'desk', create: () => ({}) }, { max: 1 });
    const desk = defineTool({ name: 'desk', description: '', parameters: z.object({}), pool, execute: () => 'mine' });
    const agent = toolAgent({ tools: [desk], reward: () => [1] });
    const sampler = scriptedSampler({
      codec: bytes,
      answers: ({ tokens }) => (bytes.decode(tokens).includes('mine') ? 'end' : written('desk', {})),
    });
    const spec = { task, group: 'g', samples: 3, environmentSeed: 1 };
    const [group] = await runGroups([spec], {
      executor: agent,
      admission: lockstep(sampler),
      contextLength: sampler.contextLength,
      renderer: hermesRenderer,
      params: { ...DEFAULT_SAMPLING, maxTokens: 200, stopTokens: bytes.stopTokens },
      limits: { maxTurns: 4, maxNewTokens: 200, maxTokens: 4096, callTimeoutMs: 1000 },
      seed: 1,
      signal: new AbortController().signal,
      log: () => undefined,
    });
    expect(group!.episodes.map(({ outcome }) => outcome)).toEqual(Array(3).fill({ kind: 'done' }));
    expect(pool.alive).toBe(0);
  });
});
