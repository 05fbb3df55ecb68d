import { z } from 'zod';
import type { ApiError } from '../api-error.ts';
import {
  type AnswerRequest,
  type ChatMessage,
  type Dialect,
  type GivenAnswer,
  overridden,
  parseBody,
  type Reply,
  restOf,
  type ServerEvent,
} from './contracts.ts';
import { textOf, toolName, toolOf, toolParameters } from './parts.ts';

/** Anthropic's Messages: https://docs.anthropic.com/en/api/messages */

const text = z.looseObject({ type: z.literal('text'), text: z.string() });
const block = z.discriminatedUnion('type', [
  text,
  z.looseObject({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: z.looseObject({}) }),
  z.looseObject({
    type: z.literal('tool_result'),
    tool_use_id: z.string(),
    content: z.union([z.string(), z.array(text)]).nullish(),
  }),
  z.looseObject({ type: z.literal('thinking'), thinking: z.string() }),
  z.looseObject({ type: z.literal('redacted_thinking') }),
]);

const request = z.looseObject({
  model: z.string(),
  max_tokens: z.int().min(1),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant']), content: z.union([z.string(), z.array(block)]) }))
    .min(1),
  system: z.union([z.string(), z.array(text)]).nullish(),
  tools: z
    .array(z.looseObject({ name: toolName, description: z.string().nullish(), input_schema: toolParameters.nullish() }))
    .max(128)
    .nullish(),
  tool_choice: z.looseObject({ type: z.enum(['auto', 'any', 'tool', 'none']), name: z.string().optional() }).nullish(),
  stop_sequences: z.array(z.string().min(1)).max(16).nullish(),
  stream: z.boolean().nullish(),
});

type Given = z.infer<typeof request>;

export const anthropic: Dialect = {
  parse(body): AnswerRequest {
    const given = parseBody(request, body);
    const { system } = given;
    const first: ChatMessage[] = system ? [{ role: 'system', content: textOf(system) }] : [];
    const choice = given.tool_choice?.type ?? 'auto';
    return {
      model: given.model,
      messages: [...first, ...given.messages.flatMap(asMessages)],
      tools: (given.tools ?? []).map(tool => toolOf(tool.name, tool.description, tool.input_schema)),
      toolChoice: choice === 'auto' || choice === 'none' ? choice : 'required',
      toolName: choice === 'tool' ? given.tool_choice?.name : undefined,
      maxTokens: given.max_tokens,
      stop: given.stop_sequences ?? [],
      n: 1,
      stream: given.stream ?? false,
      includeUsage: true,
      overridden: overridden(given, { temperature: undefined, top_p: undefined, top_k: undefined }),
    };
  },
  body: (_, reply) => {
    const answer = reply.answers[0]!;
    return { ...envelope(reply), content: blocksOf(answer), ...endOf(answer), usage: usageOf(reply) };
  },
  stream(_, head) {
    let given = '';
    let index = -1;
    const event = (type: string, data: object): ServerEvent => ({ event: type, data: { type, ...data } });
    const start = () => {
      const usage = { input_tokens: 0, output_tokens: 0 };
      const message = { ...envelope(head), content: [], stop_reason: null, stop_sequence: null, usage };
      return event('message_start', { message });
    };
    const open = (block: object) => event('content_block_start', { index: ++index, content_block: block });
    const delta = (change: object) => event('content_block_delta', { index, delta: change });
    const close = () => event('content_block_stop', { index });
    return {
      text(piece) {
        const before = given === '' ? [start(), open({ type: 'text', text: '' })] : [];
        given += piece;
        return [...before, delta({ type: 'text_delta', text: piece })];
      },
      finish(reply) {
        const answer = reply.answers[0]!;
        const events: ServerEvent[] = given === '' ? [start()] : [];
        if (answer.reasoning !== undefined) {
          events.push(open({ type: 'thinking', thinking: '', signature: '' }));
          events.push(delta({ type: 'thinking_delta', thinking: answer.reasoning }), close());
        }
        const rest = restOf(answer.content, given);
        if (rest !== '' && given === '') events.push(open({ type: 'text', text: '' }));
        if (rest !== '') events.push(delta({ type: 'text_delta', text: rest }));
        if (rest !== '' || given !== '') events.push(close());
        for (const { id, name, arguments: args } of answer.calls) {
          events.push(open({ type: 'tool_use', id, name, input: {} }));
          events.push(delta({ type: 'input_json_delta', partial_json: args }), close());
        }
        events.push(event('message_delta', { delta: endOf(answer), usage: usageOf(reply) }));
        return [...events, event('message_stop', {})];
      },
    };
  },
  error: ({ message, type, status }: ApiError) => ({
    type: 'error',
    error: { type: status === 404 ? 'not_found_error' : type === 'server_error' ? 'api_error' : type, message },
  }),
  prefix: 'msg_',
};

function asMessages({ role, content }: Given['messages'][number]): ChatMessage[] {
  if (typeof content === 'string') return [{ role, content }];
  const texts = content.flatMap(one => (one.type === 'text' ? [one.text] : []));
  const said = texts.join('');
  if (role === 'user') {
    const results = content.flatMap((one): ChatMessage[] =>
      one.type === 'tool_result'
        ? [{ role: 'tool', tool_call_id: one.tool_use_id, content: textOf(one.content ?? '') }]
        : [],
    );
    return said === '' && results.length > 0 ? results : [...results, { role, content: said }];
  }
  const calls = content.flatMap(one =>
    one.type === 'tool_use'
      ? [{ id: one.id, type: 'function' as const, function: { name: one.name, arguments: JSON.stringify(one.input) } }]
      : [],
  );
  const thought = content.flatMap(one => (one.type === 'thinking' ? [one.thinking] : [])).join('');
  return [
    {
      role,
      content: said,
      ...(thought === '' ? {} : { reasoning_content: thought }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  ];
}

function envelope({ id, model }: Pick<Reply, 'id' | 'model'>) {
  return { id, type: 'message', role: 'assistant', model };
}

function blocksOf({ reasoning, content, calls }: GivenAnswer) {
  return [
    ...(reasoning === undefined ? [] : [{ type: 'thinking', thinking: reasoning, signature: '' }]),
    ...(content === '' ? [] : [{ type: 'text', text: content }]),
    ...calls.map(({ id, name, arguments: args }) => ({
      type: 'tool_use',
      id,
      name,
      input: JSON.parse(args) as unknown,
    })),
  ];
}

function endOf({ finish, stopString }: GivenAnswer) {
  const reasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' } as const;
  const isStopped = finish === 'stop' && stopString !== undefined;
  return { stop_reason: isStopped ? 'stop_sequence' : reasons[finish], stop_sequence: isStopped ? stopString : null };
}

function usageOf({ usage: { prompt, replayed, completion } }: Reply) {
  return {
    input_tokens: prompt - replayed,
    cache_read_input_tokens: replayed,
    cache_creation_input_tokens: 0,
    output_tokens: completion,
  };
}
