import { afterEach, describe, expect, it } from 'vitest';
import type { Task } from '../../episode/task.ts';
import { toTrajectories } from '../../episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../../episode/validate.ts';
import { byteRenderer } from '../../testing/byte-tokenizer.ts';
import { type TestContextOptions, testContext } from '../../testing/executor-context.ts';
import { chatRenderer } from '../../text/chat-renderer.ts';
import { chatTemplate } from '../../text/template.ts';
import type { Executor } from '../contracts.ts';
import { FidelityReport } from './fidelity.ts';
import { type RecordedAgentOptions, type RecordedRun, recordedAgent } from './recorded-agent.ts';

const task: Task = { id: 't', prompt: '2+3', label: '5', metadata: {} };
const bytes = byteRenderer();
const renderer = chatRenderer({
  codec: bytes,
  stopTokens: bytes.stopTokens,
  template: chatTemplate(
    '{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool.function.name }} {% endfor %}as <tool_call><|im_end|>\n{% endif %}' +
      '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}' +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  ),
});
/** Shows no reasoning but that of the last answer. */
const forgetful = chatRenderer({
  codec: bytes,
  stopTokens: bytes.stopTokens,
  template: chatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}" +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  ),
});

// biome-ignore lint/suspicious/noExplicitAny: replies are read as a client in JavaScript reads them
type Json = any;
type Message = Record<string, unknown>;

const tools = [{ type: 'function', function: { name: 'add', description: 'Adds.', parameters: { type: 'object' } } }];
const written = (name: string, given: unknown) =>
  `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;

async function post({ baseURL, apiKey }: RecordedRun, path: string, body: unknown, headers = {}): Promise<Json> {
  const response = await fetch(`${baseURL}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, headers: response.headers, text, ...(isJson ? JSON.parse(text) : {}) };
}

const ask = (run: RecordedRun, messages: readonly Message[], more: Message = {}, headers = {}): Promise<Json> =>
  post(run, 'chat/completions', { model: 'policy', messages, ...more }, headers);
const said = (reply: Json): Message => reply.choices[0].message;
const user = (content: string) => ({ role: 'user', content });

const agents: Executor[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.close?.();
});

async function run(
  program: RecordedAgentOptions['run'],
  lines: readonly string[] | NonNullable<TestContextOptions['answers']>,
  options: Partial<RecordedAgentOptions> = {},
  context: TestContextOptions = {},
) {
  const agent = recordedAgent({ run: program, ...options });
  agents.push(agent);
  const test = testContext({
    renderer,
    answers: typeof lines === 'function' ? lines : (_, index) => lines[index] ?? 'out of lines',
    ...context,
    limits: { maxNewTokens: 400, ...context.limits },
  });
  const episode = await agent.run(task, test);
  validateEpisode(episode, { vocabularySize: renderer.vocabularySize });
  for (const trajectory of toTrajectories(episode)) validateTrajectory(trajectory);
  const seen = test.sampler.requests.map(({ tokens }) => renderer.decode(tokens, { special: true }));
  return { episode, seen, test };
}

describe('a conversation', () => {
  it('is continued with the tokens that were sampled', async () => {
    const { episode, seen } = await run(
      async (_, at) => {
        const messages: Message[] = [user('2+3')];
        const first = await ask(at, messages, { tools });
        expect(first.choices[0].finish_reason).toBe('tool_calls');
        expect(first.usage).toMatchObject({ prompt_tokens_details: { cached_tokens: 0 } });
        const [call] = first.choices[0].message.tool_calls;
        expect(call).toMatchObject({ type: 'function', function: { name: 'add', arguments: '{"a":2,"b":3}' } });
        // As clients write it anew: indented arguments, no text, another order of keys.
        const again = { ...call, function: { arguments: '{ "b": 3,\n "a": 2 }', name: 'add' } };
        messages.push({ role: 'assistant', content: null, tool_calls: [again] });
        messages.push({ role: 'tool', tool_call_id: call.id, content: '5' });
        const second = await ask(at, messages, { tools });
        expect(said(second)).toMatchObject({ content: '5' });
        messages.push({ role: 'assistant', content: ' 5\n' }, user('sure?'));
        expect(said(await ask(at, messages, { tools })).content).toBe('yes');
        return 1;
      },
      [`I add.  ${written('add', { a: 2, b: 3 })}`, '5', 'yes'],
    );
    expect(seen[2]).toBe(
      '<|im_start|>system\nadd as <tool_call><|im_end|>\n<|im_start|>user\n2+3<|im_end|>\n<|im_start|>assistant\n' +
        'I add.  <tool_call>{"name":"add","arguments":{"a":2,"b":3}}</tool_call><|im_end|>\n' +
        '<|im_start|>tool\n5<|im_end|>\n<|im_start|>assistant\n5<|im_end|>\n' +
        '<|im_start|>user\nsure?<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(toTrajectories(episode)).toHaveLength(1);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 0, 1]);
    expect(episode.metrics).toMatchObject({ turns: 3, tool_calls: 1, recorded_replayed: 1, recorded_branches: 0 });
  });

  it.each<[string, (at: RecordedRun, first: Json) => Promise<unknown>]>([
    [
      'fork',
      async (at, first) => {
        await ask(at, [user('q'), said(first), user('a')]);
        await ask(at, [user('q'), said(first), user('b')]);
      },
    ],
    ['resampled', at => ask(at, [user('q')])],
    ['edited', at => ask(at, [user('q'), { role: 'assistant', content: 'another' }, user('b')]).then(() => undefined)],
    ['new', at => ask(at, [user('a summary')])],
    ['tools', (at, first) => ask(at, [user('q'), said(first), user('b')], { tools })],
  ])('opens a branch: %s', async (cause, then) => {
    const { episode } = await run(
      async (_, at) => {
        const first = await ask(at, [user('q')]);
        await then(at, first);
        if (cause === 'edited') await ask(at, [user('rewritten'), said(first), user('b')]);
        return 1;
      },
      (_, index) => `line ${index}`,
    );
    expect(episode.metrics[`recorded_branch_${cause}`]).toBe(1);
    expect(toTrajectories(episode).length).toBeGreaterThan(1);
    expect(episode.leaves).toBeUndefined();
  });

  it('opens a branch where the template drops reasoning', async () => {
    const { episode, seen } = await run(
      async (_, at) => {
        const first = await ask(at, [user('q')]);
        expect(said(first)).toMatchObject({ content: 'a', reasoning_content: 'hm' });
        const { reasoning_content: _reasoning, ...dropped } = said(first);
        await ask(at, [user('q'), dropped, user('more')]);
        return 1;
      },
      ['<think>hm</think>\na', 'b'],
      {},
      { renderer: forgetful },
    );
    expect(seen[1]).toContain('assistant\n\na<|im_end|>');
    expect(episode.metrics).toMatchObject({ recorded_branch_reasoning: 1, recorded_branches: 1, recorded_replayed: 0 });
  });

  it('is one tree for n answers', async () => {
    const { episode } = await run(
      async (_, at) => {
        const both = await ask(at, [user('q')], { n: 2 });
        expect(both.choices.map((choice: Json) => choice.message.content)).toEqual(['line 0', 'line 1']);
        await ask(at, [user('q'), both.choices[0].message, user('more')]);
        return 1;
      },
      (_, index) => `line ${index}`,
    );
    expect(episode.segments.map(({ parent }) => parent)).toEqual([-1, 0, 0, 1, 3]);
  });

  it('gives log-probs, stops at strings and says when it was cut', async () => {
    await run(
      async (_, at) => {
        const reply = await ask(at, [user('q')], { logprobs: true, top_logprobs: 2, stop: 'X', max_tokens: 9 });
        expect(reply.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'ab' } });
        expect(reply.choices[0].logprobs.content.map(({ token }: Json) => token)).toEqual(['a', 'b', 'X']);
        const cut = await ask(at, [user('r')], { max_completion_tokens: 2 });
        expect(cut.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'lo' } });
        return 1;
      },
      ['abXc', 'long'],
    );
  });
});

describe('a request that is repeated', () => {
  it('gets the same answer if the client says that it retries', async () => {
    const { episode } = await run(
      async (_, at) => {
        const first = await ask(at, [user('q')]);
        const again = await ask(at, [user('q')], {}, { 'x-stainless-retry-count': '1' });
        expect(again).toEqual({ ...first, headers: again.headers });
        return 1;
      },
      ['a', 'b'],
    );
    expect(episode.steps).toHaveLength(1);
    expect(episode.metrics).toMatchObject({ recorded_retries: 1, recorded_branches: 0 });
  });

  it('is recorded once after an error', async () => {
    const { episode } = await run(
      async (_, at) => {
        expect(await ask(at, [user('q')])).toMatchObject({ status: 503, error: { type: 'server_error' } });
        expect(said(await ask(at, [user('q')])).content).toBe('a');
        return 1;
      },
      (_, index) => {
        if (index === 0) throw new Error('the engine is away');
        return 'a';
      },
    );
    expect(episode.segments).toHaveLength(2);
    expect(episode.metrics).toMatchObject({ recorded_errors: 1, recorded_branches: 0 });
  });

  it('leaves nothing in the tree that was never answered', async () => {
    const { episode } = await run(
      async (_, at) => {
        expect((await ask(at, [user('q')])).status).toBe(503);
        const first = await ask(at, [user('r')]);
        expect((await ask(at, [user('r'), said(first), user('s')])).status).toBe(503);
        await post(at, 'rewards', { reward: 0.5, id: first.id });
        return 1;
      },
      (_, index) => {
        if (index !== 1) throw new Error('the engine is away');
        return 'a';
      },
    );
    expect(episode.segments.map(({ source, parent }) => [source, parent])).toEqual([
      ['prompt', -1],
      ['policy', 0],
    ]);
    expect(episode.steps).toMatchObject([{ segment: 1, reward: 1.5 }]);
  });

  it('is sampled anew after its client has left, which cancels what was under way', async () => {
    const context = { gated: true };
    const agent = recordedAgent({
      run: async (_, at) => {
        const leaving = new AbortController();
        const body = JSON.stringify({ model: 'policy', messages: [user('q')] });
        const headers = { authorization: `Bearer ${at.apiKey}` };
        const left = fetch(`${at.baseURL}/chat/completions`, { method: 'POST', headers, body, signal: leaving.signal });
        await test.sampler.arrived(1);
        const { signal } = test.sampler.requests[0]!;
        const cancelled = new Promise(resolve => signal?.addEventListener('abort', resolve));
        leaving.abort();
        await expect(left).rejects.toThrow();
        await cancelled;
        const again = ask(at, [user('q')]);
        await test.sampler.arrived(2);
        test.sampler.finish(1);
        expect(said(await again).content).toBe('line 1');
        return 1;
      },
    });
    agents.push(agent);
    const test = testContext({ renderer, answers: (_, index) => `line ${index}`, ...context });
    const episode = await agent.run(task, test);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.segments).toHaveLength(2);
    expect(episode.metrics).toMatchObject({ recorded_cancelled: 1, recorded_branches: 0 });
  });
});

describe('the reward', () => {
  const once = async (_: unknown, at: RecordedRun) => void (await ask(at, [user('q')]));

  it('is what the program returns, a number or an object', async () => {
    const { episode } = await run(
      async (_, at) => {
        await once(_, at);
        return { reward: 2, score: 0.5, metrics: { right: 1 } };
      },
      ['a'],
    );
    expect(episode).toMatchObject({ score: 0.5, metrics: { right: 1 }, steps: [{ reward: 2 }] });
  });

  it('is what a function makes of the result', async () => {
    const { episode } = await run(async (_, at) => said(await ask(at, [user('q')])).content, ['5'], {
      reward: batch => batch.map(({ text, result, label }) => (text === label && result === label ? 1 : 0)),
    });
    expect(episode.score).toBe(1);
  });

  it('comes over HTTP, for the episode and for single answers; a repeated one counts once', async () => {
    const { episode } = await run(
      async (_, at) => {
        const first = await ask(at, [user('q')]);
        await ask(at, [user('q'), said(first), user('r')]);
        expect(await post(at, 'rewards', { reward: 0.25, id: first.id })).toMatchObject({ ok: true });
        await post(at, 'rewards', { reward: 0.5, id: first.id });
        await post(at, 'rewards', { reward: 1 });
        expect((await post(at, 'rewards', { reward: 1, id: 'x' })).status).toBe(404);
        expect((await post(at, 'rewards', { reward: 'x' })).status).toBe(400);
      },
      ['a', 'b'],
    );
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0.5, 1]);
  });

  it('is discounted along the tree', async () => {
    const { episode } = await run(
      async (_, at) => {
        const first = await ask(at, [user('q')]);
        await ask(at, [user('a sub-agent')]);
        const last = await ask(at, [user('q'), said(first), user('r')]);
        await post(at, 'rewards', { reward: 4, id: last.id });
      },
      (_, index) => `line ${index}`,
      { discount: 0.5 },
    );
    expect(episode.steps.map(({ reward }) => reward)).toEqual([2, 0, 4]);
  });

  it.each<[string, RecordedAgentOptions['run'], object]>([
    ['nobody gave', once, { kind: 'failed', failure: 'reward' }],
    [
      'the program threw instead of giving',
      async (_, at) => once(_, at).then(() => Promise.reject(new Error('no'))),
      { kind: 'failed', failure: 'environment', message: 'agent: no' },
    ],
    ['there is without a request', async () => 1, { kind: 'failed', failure: 'recorder' }],
  ])('that %s fails the episode', async (_, program, outcome) => {
    expect((await run(program, ['a'])).episode.outcome).toMatchObject(outcome);
  });
});

describe('limits', () => {
  it('ends an episode truncated when answers are used up', async () => {
    const { episode } = await run(
      async (_, at) => {
        for (let turn = 0; ; turn++) {
          const reply = await ask(at, [user(`q ${turn}`)]);
          if (reply.status !== 200) throw new Error(reply.error.code);
        }
      },
      (_, index) => `line ${index}`,
      {},
      { limits: { maxTurns: 3 } },
    );
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
    expect(episode.steps).toHaveLength(3);
  });

  it.each([
    [true, { kind: 'truncated', reason: 'tokens' }],
    [false, { kind: 'failed', failure: 'overflow' }],
  ])('refuses a conversation that is too long (after an answer: %s)', async (after, outcome) => {
    const { episode } = await run(
      async (_, at) => {
        if (after) await ask(at, [user('q')]);
        const reply = await ask(at, [user('long '.repeat(200))]);
        expect(reply).toMatchObject({ status: 400, error: { code: 'context_length_exceeded' } });
        throw new Error(reply.error.message);
      },
      ['a'],
      {},
      { limits: { maxTokens: 600 } },
    );
    expect(episode.outcome).toMatchObject(outcome);
  });

  it('stops a program that never ends and keeps what was sampled, unfinished answers too', async () => {
    let later: Promise<Json> | undefined;
    const context = testContext({ renderer, answers: (_, index) => `line ${index}`, gated: true });
    const agent = recordedAgent({
      timeoutMs: 200,
      run: async (_, at) => {
        const first = ask(at, [user('q')]);
        await context.sampler.arrived(1);
        context.sampler.finish(0);
        const second = ask(at, [user('q'), said(await first), user('r')]);
        await context.sampler.arrived(2);
        context.sampler.advance(1, 3);
        at.signal.addEventListener('abort', () => {
          later = second;
        });
        await new Promise(() => undefined);
      },
    });
    agents.push(agent);
    const episode = await agent.run(task, context);
    validateEpisode(episode, { vocabularySize: renderer.vocabularySize });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'timeout', step: 2 });
    expect(episode.steps.map(({ finishReason }) => finishReason)).toEqual(['stop', 'abort']);
    expect(renderer.decode(episode.segments.at(-1)!.tokens)).toBe('lin');
    expect(await later).toMatchObject({ status: 409 });
  });
});

describe('what a request demands', () => {
  const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
  const json = { type: 'json_schema', json_schema: { name: 'a', schema } };
  const named = { type: 'function', function: { name: 'add' } };

  it('is counted where the answer is not as it was asked for', async () => {
    const lines = ['words', written('add', {}), written('sub', {}), '{"a":1}', '{"b":1}', 'words', '{}', '[1]'];
    const { episode } = await run(async (_, at) => {
      const demands: Message[] = [
        { tools, tool_choice: 'required' },
        { tools, tool_choice: 'required' },
        { tools, tool_choice: named },
        { response_format: json },
        { response_format: json },
        { response_format: { type: 'json_object' } },
        { response_format: { type: 'json_object' }, presence_penalty: 1, temperature: 0.2 },
        { response_format: { type: 'text' } },
      ];
      for (const [i, more] of demands.entries())
        expect(await ask(at, [user(`q${i}`)], more)).toMatchObject({ status: 200 });
      return 1;
    }, lines);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.metrics).toMatchObject({
      recorded_choice_unmet: 2,
      recorded_format_unmet: 2,
      recorded_overridden: 1,
    });
    const report = new FidelityReport();
    report.add([episode]);
    report.addMismatch(2e-5);
    const told = report.describe();
    expect(told).toContain('differ by at most 0.000020 nats');
    expect(told).toContain('2 answers without the call that was required');
    expect(told).toContain('2 answers not in the form that was asked for');
    expect(told).toContain('1 answers sampled as the run does, not as the request says');
  });

  it('is refused where the run is strict, and where there is no such tool', async () => {
    const { episode } = await run(
      async (_, at) => {
        const refused = async (more: Message, message: string) => {
          const { status, error } = await ask(at, [user('q')], more);
          expect([status, error.type, error.message]).toEqual([
            400,
            'invalid_request_error',
            expect.stringContaining(message),
          ]);
        };
        await refused({ tools, tool_choice: 'required' }, 'tool_choice: no request changes');
        await refused({ response_format: json, temperature: 0 }, 'response_format, temperature: no request');
        await refused({ tool_choice: 'required' }, 'requires a call, and there are no tools');
        await refused({ tools, tool_choice: { ...named, function: { name: 'sub' } } }, 'requires the tool "sub"');
        await refused({ response_format: { type: 'yaml' } }, 'response_format');
        expect(await ask(at, [user('q')], { tools, tool_choice: 'auto' })).toMatchObject({ status: 200 });
        return 1;
      },
      ['fine'],
      { strict: true },
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.metrics.turns).toBe(1);
  });
});

describe('an answer that may have calls', () => {
  const pieces = (text: string): string[] =>
    [...text.matchAll(/^data: (\{.*)$/gm)].flatMap(([, data]) => JSON.parse(data!).choices[0]?.delta.content || []);

  it('is streamed until a call begins', async () => {
    const line = `\nI add <them>. ${written('add', { a: 1 })}`;
    let streamed: Json;
    const { episode } = await run(
      async (_, at) => {
        streamed = await ask(at, [user('q')], { tools, stream: true });
        const calls = [{ id: 'c00000000', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }];
        const answer = { role: 'assistant', content: pieces(streamed.text).join(''), tool_calls: calls };
        await ask(at, [user('q'), answer, { role: 'tool', tool_call_id: 'c00000000', content: '3' }], { tools });
        return 1;
      },
      [line, 'done'],
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(pieces(streamed.text).join('')).toBe('I add <them>.');
    // Bytes are tokens here: all but what might begin a call came by itself.
    expect(pieces(streamed.text).length).toBeGreaterThan(8);
    expect(streamed.text).toContain('"arguments":"{\\"a\\":1}"');
    expect(episode.metrics).toMatchObject({ recorded_replayed: 1, recorded_branches: 0, tool_calls: 1 });
  });

  it('is given whole where a call cannot be read', async () => {
    const { episode } = await run(
      async (_, at) => {
        const { text } = await ask(at, [user('q')], { tools, stream: true });
        expect(pieces(text).join('')).toBe('so <tool_call>{</tool_call> end');
        return 1;
      },
      [' so <tool_call>{</tool_call> end'],
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
  });
});
