import { describe, expect, it } from 'vitest';
import {
  agents,
  ask,
  forgetful,
  type Json,
  type Message,
  post,
  renderer,
  run,
  said,
  task,
  tools,
  user,
  written,
} from '../../../tests/support/recorded-run.ts';
import { toTrajectories } from '../../episode/trajectory.ts';
import { testContext } from '../../testing/executor-context.ts';
import { type RecordedAgentOptions, type RecordedRun, recordedAgent } from './recorded-agent.ts';

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
