import { z } from 'zod';
import {
  type AnswerRequest,
  type ChatMessage,
  type Dialect,
  type GivenAnswer,
  type GivenCall,
  openAiError,
  overridden,
  parseBody,
  type Reply,
  restOf,
  type ServerEvent,
} from './contracts.ts';
import { format, formatOf } from './format.ts';
import { bundleOf, content, textOf, tokenLogprobs, toolName, toolOf, toolParameters } from './parts.ts';

/** OpenAI's chat completions: https://platform.openai.com/docs/api-reference/chat */

const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.enum(['system', 'developer', 'user']), content, name: z.string().nullish() }),
  z.looseObject({
    role: z.literal('assistant'),
    content: content.nullish(),
    reasoning_content: z.string().nullish(),
    name: z.string().nullish(),
    tool_calls: z
      .array(
        z.looseObject({
          id: z.string(),
          type: z.literal('function').optional(),
          function: z.looseObject({ name: z.string(), arguments: z.string() }),
        }),
      )
      .nullish(),
  }),
  z.looseObject({ role: z.literal('tool'), content, tool_call_id: z.string() }),
]);

const tool = z.looseObject({
  type: z.literal('function'),
  function: z.looseObject({
    name: toolName,
    description: z.string().nullish(),
    parameters: toolParameters.nullish(),
  }),
});

const request = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  tools: z.array(tool).max(128).nullish(),
  tool_choice: z
    .union([
      z.enum(['none', 'auto', 'required']),
      z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
    ])
    .nullish(),
  response_format: format.nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(16)]).nullish(),
  n: z.int().min(1).max(128).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});

/** What the run decides: the distribution that is sampled from. */
const NEUTRAL = {
  temperature: undefined,
  top_p: undefined,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: undefined,
  seed: undefined,
};

export const chat: Dialect = {
  parse(body): AnswerRequest {
    const given = parseBody(request, body);
    return {
      model: given.model,
      messages: given.messages.map(asMessage),
      tools: (given.tools ?? []).map(({ function: { name, description, parameters } }) =>
        toolOf(name, description, parameters),
      ),
      toolChoice: typeof given.tool_choice === 'string' ? given.tool_choice : given.tool_choice ? 'required' : 'auto',
      toolName: typeof given.tool_choice === 'object' ? given.tool_choice?.function.name : undefined,
      format: formatOf('response_format', given.response_format),
      maxTokens: given.max_completion_tokens ?? given.max_tokens ?? undefined,
      stop: typeof given.stop === 'string' ? [given.stop] : (given.stop ?? []),
      n: given.n ?? 1,
      topLogprobs: given.logprobs ? (given.top_logprobs ?? 0) : undefined,
      tokenIds: given.return_token_ids ? 'beside' : undefined,
      namesTokensById: given.return_tokens_as_token_ids ?? false,
      stream: given.stream ?? false,
      includeUsage: given.stream_options?.include_usage ?? false,
      overridden: overridden(given, NEUTRAL),
    };
  },
  body: (asked, reply) => ({
    ...head(reply, 'chat.completion'),
    ...(asked.tokenIds === 'beside' && { prompt_token_ids: [...reply.answers[0]!.ids!.prompt] }),
    choices: reply.answers.map((answer, index) => ({
      index,
      message: {
        role: 'assistant',
        content: answer.content === '' && answer.calls.length > 0 ? null : answer.content,
        refusal: null,
        ...(answer.reasoning === undefined ? {} : { reasoning_content: answer.reasoning }),
        ...(asked.tokenIds === 'bundled' && bundleOf(answer.ids!)),
        ...(answer.calls.length > 0 ? { tool_calls: answer.calls.map(call => callOf(call)) } : {}),
      },
      logprobs: logprobsOf(asked, answer),
      ...(asked.tokenIds === 'beside' && { token_ids: [...answer.ids!.answer] }),
      finish_reason: answer.finish,
    })),
    usage: usageOf(reply),
    system_fingerprint: null,
  }),
  stream(asked, begun) {
    let given = '';
    let around: [string, string] | undefined;
    const chunk = (index: number, delta: unknown, finish: string | null = null, logprobs: unknown = null) => ({
      data: {
        ...head(begun, 'chat.completion.chunk'),
        choices: [{ index, delta, logprobs, finish_reason: finish }],
        ...(asked.includeUsage ? { usage: null } : {}),
      },
    });
    const opened = new Set<number>();
    const open = (index: number): ServerEvent[] => {
      if (opened.has(index)) return [];
      opened.add(index);
      return [chunk(index, { role: 'assistant', content: '' })];
    };
    return {
      text(piece) {
        given += piece;
        // Written once: there is an event for each token, and they differ in their text alone.
        around ??= JSON.stringify(chunk(0, { content: '' }).data).split('"content":""') as [string, string];
        return [...open(0), { data: `${around[0]}"content":${JSON.stringify(piece)}${around[1]}` }];
      },
      finish(reply) {
        const events = reply.answers.flatMap((answer, index) => {
          const rest = index === 0 ? restOf(answer.content, given) : answer.content;
          return [
            ...open(index),
            ...(answer.reasoning === undefined ? [] : [chunk(index, { reasoning_content: answer.reasoning })]),
            ...(rest === '' ? [] : [chunk(index, { content: rest }, null, logprobsOf(asked, answer))]),
            ...answer.calls.flatMap((call, place) => [
              chunk(index, { tool_calls: [{ index: place, ...callOf({ ...call, arguments: '' }) }] }),
              chunk(index, { tool_calls: [{ index: place, function: { arguments: call.arguments } }] }),
            ]),
            chunk(index, {}, answer.finish),
          ];
        });
        if (!asked.includeUsage) return events;
        const data = { ...head(begun, 'chat.completion.chunk'), choices: [], usage: usageOf(reply) };
        return [...events, { data }];
      },
    };
  },
  error: openAiError,
  prefix: 'chatcmpl-',
  done: '[DONE]',
};

type GivenMessage = z.infer<typeof message>;

function asMessage(given: GivenMessage): ChatMessage {
  switch (given.role) {
    case 'tool':
      return { role: 'tool', content: textOf(given.content), tool_call_id: given.tool_call_id };
    case 'assistant': {
      const calls = given.tool_calls ?? [];
      return {
        role: 'assistant',
        content: textOf(given.content ?? ''),
        ...(given.reasoning_content ? { reasoning_content: given.reasoning_content } : {}),
        ...(calls.length === 0
          ? {}
          : { tool_calls: calls.map(({ id, function: called }) => ({ id, type: 'function', function: called })) }),
      };
    }
    default:
      return { role: given.role === 'developer' ? 'system' : given.role, content: textOf(given.content) };
  }
}

function head({ id, created, model }: Pick<Reply, 'id' | 'created' | 'model'>, object: string) {
  return { id, object, created, model };
}

function callOf({ id, name, arguments: given }: GivenCall) {
  return { id, type: 'function', function: { name, arguments: given } };
}

function usageOf({ usage: { prompt, replayed, completion } }: Reply) {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: replayed },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

function logprobsOf({ topLogprobs }: AnswerRequest, { tokens }: GivenAnswer) {
  if (topLogprobs === undefined) return null;
  return { content: tokenLogprobs(tokens), refusal: null };
}
