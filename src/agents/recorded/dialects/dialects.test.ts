import { afterAll, describe, expect, it } from 'vitest';
import { byteRenderer } from '../../../testing/byte-tokenizer.ts';
import { testContext } from '../../../testing/executor-context.ts';
import { chatRenderer } from '../../../text/chat-renderer.ts';
import { chatTemplate } from '../../../text/template.ts';
import { type RecordedRun, recordedAgent } from '../recorded-agent.ts';

const bytes = byteRenderer();
const renderer = chatRenderer({
  codec: bytes,
  stopTokens: bytes.stopTokens,
  template: chatTemplate(
    '{# <tool_call> #}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}' +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  ),
});
// biome-ignore lint/suspicious/noExplicitAny: replies are read as a client in JavaScript reads them
type Json = any;
const CALL = '<tool_call>{"name":"add","arguments":{"a":2}}</tool_call>';
const closers: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closers) await close();
});

async function play(lines: readonly string[], program: (at: RecordedRun) => Promise<void>) {
  const agent = recordedAgent({
    run: async (_, at) => {
      await program(at);
      return 1;
    },
  });
  closers.push(() => agent.close?.());
  const context = testContext({ renderer, answers: (_, i) => lines[i] ?? 'x', limits: { maxNewTokens: 400 } });
  const episode = await agent.run({ id: 't', prompt: '', label: '', metadata: {} }, context);
  expect(episode.outcome).toEqual({ kind: 'done' });
  return episode;
}

async function post({ baseURL, apiKey }: RecordedRun, path: string, body: object): Promise<Json> {
  const response = await fetch(`${baseURL}/${path}`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey },
    body: JSON.stringify({ model: 'policy', max_tokens: 100, ...body }),
  });
  return response.json();
}

/** Events of a streamed reply: name where there is one, and data. */
async function events({ baseURL, apiKey }: RecordedRun, path: string, body: object): Promise<Json[]> {
  const response = await fetch(`${baseURL}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: 'policy', max_tokens: 300, stream: true, ...body }),
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const blocks = (await response.text()).split('\n\n').filter(block => block !== '');
  return blocks.map(block => {
    const [, event, data = ''] = /^(?:event: (.*)\n)?data: (.*)$/.exec(block)!;
    const value: Json = data === '[DONE]' ? data : JSON.parse(data);
    if (event !== undefined) expect(value.type).toBe(event);
    return value;
  });
}

describe('chat completions', () => {
  const tools = [{ type: 'function', function: { name: 'add' } }];
  const messages = [{ role: 'user', content: 'q' }];

  it('streams text as it is sampled, but for what a stop string takes away', async () => {
    await play(['abcXYZ', '<think>hm</think>é'], async at => {
      const all = await events(at, 'chat/completions', {
        messages,
        stop: 'XY',
        stream_options: { include_usage: true },
      });
      const deltas = all.slice(0, -3).map(({ choices }) => choices[0].delta);
      expect(deltas).toEqual([
        { role: 'assistant', content: '' },
        { content: 'a' },
        { content: 'b' },
        { content: 'c' },
      ]);
      expect(all.at(-3).choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' });
      expect(all.at(-2)).toMatchObject({ choices: [], usage: { completion_tokens: 5 } });
      expect(all.at(-1)).toBe('[DONE]');
      expect(new Set(all.slice(0, -1).map(({ id }) => id)).size).toBe(1);
      const thought = await events(at, 'chat/completions', { messages: [{ role: 'user', content: 'r' }] });
      expect(thought.slice(1, 3).map(({ choices }) => choices[0].delta)).toEqual([
        { reasoning_content: 'hm' },
        { content: 'é' },
      ]);
    });
  });

  it('streams calls with their id and name once', async () => {
    await play([`so ${CALL}${CALL}`], async at => {
      const all = await events(at, 'chat/completions', { messages, tools });
      const deltas = all.slice(1, -1).map(({ choices }) => choices[0].delta);
      expect(deltas).toEqual([
        { content: 's' },
        { content: 'o' },
        { tool_calls: [{ index: 0, id: 'c00000000', type: 'function', function: { name: 'add', arguments: '' } }] },
        { tool_calls: [{ index: 0, function: { arguments: '{"a":2}' } }] },
        { tool_calls: [{ index: 1, id: 'c00000001', type: 'function', function: { name: 'add', arguments: '' } }] },
        { tool_calls: [{ index: 1, function: { arguments: '{"a":2}' } }] },
        {},
      ]);
      expect(all.at(-2).choices[0].finish_reason).toBe('tool_calls');
    });
  });
});

describe('Responses', () => {
  it('streams numbered events and goes on from a response by its id', async () => {
    const episode = await play(['hi', 'more'], async at => {
      const all = await events(at, 'responses', { input: 'q', instructions: 'be short' });
      expect(all.map(({ type }) => type)).toEqual([
        'response.created',
        'response.in_progress',
        'response.output_item.added',
        'response.content_part.added',
        'response.output_text.delta',
        'response.output_text.delta',
        'response.output_text.done',
        'response.content_part.done',
        'response.output_item.done',
        'response.completed',
      ]);
      expect(all.map(({ sequence_number: number }) => number)).toEqual(all.map((_, i) => i));
      const { response } = all.at(-1);
      expect(response.output[0].content[0].text).toBe('hi');
      const next = { input: 'and?', previous_response_id: response.id, instructions: 'be short' };
      expect(await post(at, 'responses', next)).toMatchObject({
        status: 'completed',
        previous_response_id: response.id,
      });
    });
    expect(episode.metrics).toMatchObject({ recorded_replayed: 1, recorded_branches: 0 });
  });

  it('finds items by reference and refuses what it does not know', async () => {
    const tools = [{ type: 'function', name: 'add' }];
    const episode = await play([CALL, '2'], async at => {
      const first = await post(at, 'responses', { input: 'q', tools });
      const [call] = first.output;
      const input = [
        { role: 'user', content: 'q' },
        { type: 'item_reference', id: call.id },
        { type: 'function_call_output', call_id: call.call_id, output: '2' },
      ];
      expect((await post(at, 'responses', { input, tools })).output[0].content[0].text).toBe('2');
      expect((await post(at, 'responses', { input: 'q', previous_response_id: 'x' })).error.code).toBe(
        'previous_response_not_found',
      );
    });
    expect(episode.metrics).toMatchObject({ recorded_replayed: 1, recorded_branches: 0 });
  });
});

describe('Messages', () => {
  const tools = [{ name: 'add', input_schema: { type: 'object' } }];

  it('is continued like the others', async () => {
    const episode = await play([`so ${CALL}`, 'two'], async at => {
      const messages: Json[] = [{ role: 'user', content: 'q' }];
      const first = await post(at, 'v1/messages', { messages, tools, system: 'be short' });
      expect(first).toMatchObject({ type: 'message', role: 'assistant', stop_reason: 'tool_use' });
      expect(first.content).toEqual([
        { type: 'text', text: 'so' },
        { type: 'tool_use', id: 'c00000000', name: 'add', input: { a: 2 } },
      ]);
      const result = { type: 'tool_result', tool_use_id: first.content[1].id, content: [{ type: 'text', text: '2' }] };
      messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: [result] });
      const second = await post(at, 'messages', { messages, tools, system: 'be short' });
      expect(second).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'two' }] });
      expect(await post(at, 'messages', { messages: [] })).toMatchObject({
        type: 'error',
        error: { type: 'invalid_request_error' },
      });
    });
    expect(episode.metrics).toMatchObject({ recorded_replayed: 1, recorded_branches: 0 });
  });

  it('streams blocks', async () => {
    await play(['hi', CALL], async at => {
      const text = await events(at, 'messages', { messages: [{ role: 'user', content: 'q' }] });
      expect(text.map(({ type }) => type)).toEqual([
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
      ]);
      const call = await events(at, 'messages', { messages: [{ role: 'user', content: 'r' }], tools });
      expect(call[1]).toMatchObject({ index: 0, content_block: { type: 'tool_use', name: 'add', input: {} } });
      expect(call[2].delta).toEqual({ type: 'input_json_delta', partial_json: '{"a":2}' });
      expect(call.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' } });
    });
  });
});
