import { z } from 'zod';
import { ApiError } from '../api-error.ts';
import {
  type AnswerRequest,
  type ChatMessage,
  type Dialect,
  openAiError,
  overridden,
  parseBody,
  type Reply,
} from './contracts.ts';
import { format, formatOf } from './format.ts';
import { content, part, textOf, toolName, toolOf, toolParameters } from './parts.ts';
import { outputOf, responseBody } from './responses-output.ts';
import { responsesStream } from './responses-stream.ts';

/** OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses */

const item = z.union(
  [
    z.looseObject({
      type: z.literal('message').default('message'),
      role: z.enum(['system', 'developer', 'user', 'assistant']),
      content,
    }),
    z.looseObject({ type: z.literal('function_call'), call_id: z.string(), name: z.string(), arguments: z.string() }),
    z.looseObject({ type: z.literal('function_call_output'), call_id: z.string(), output: content }),
    z.looseObject({ type: z.literal('reasoning'), summary: z.array(part).optional() }),
    z.looseObject({ type: z.literal('item_reference'), id: z.string() }),
  ],
  { error: 'expected a message, function_call, function_call_output, reasoning or item_reference' },
);
type Item = z.infer<typeof item>;

const request = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(item)], { error: 'expected text or an array of items' }),
  instructions: z.string().nullish(),
  tools: z
    .array(
      z.looseObject({
        type: z.literal('function'),
        name: toolName,
        description: z.string().nullish(),
        parameters: toolParameters.nullish(),
      }),
    )
    .max(128)
    .nullish(),
  tool_choice: z
    .union([z.enum(['auto', 'none', 'required']), z.looseObject({ type: z.literal('function'), name: z.string() })])
    .nullish(),
  text: z.looseObject({ format: format.nullish() }).nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  return_token_ids: z.boolean().nullish(),
  include: z.array(z.string()).nullish(),
  previous_response_id: z.string().nullish(),
  stream: z.boolean().nullish(),
});

/** What the Responses API keeps between requests: replies and items that later requests name. One for each episode. */
export class ResponsesStore {
  readonly #items = new Map<string, unknown>();
  readonly #conversations = new Map<string, readonly ChatMessage[]>();

  readonly dialect: Dialect = {
    parse: body => this.#parse(body),
    body: (asked, reply) => responseBody(asked, reply),
    stream: (asked, head) => responsesStream(asked, head),
    error: openAiError,
    prefix: 'resp_',
  };

  /** Remembers a reply of this dialect. */
  keep(asked: AnswerRequest, reply: Reply): void {
    if (asked.echo === undefined) return;
    const items = outputOf(asked, reply.id, reply.answers[0]!);
    for (const one of items) this.#items.set(one.id, one);
    const said = this.#messages(items as unknown as Item[]);
    const before = asked.echo.instructions === null ? asked.messages : asked.messages.slice(1);
    this.#conversations.set(reply.id, [...before, ...said]);
  }

  #parse(body: Readonly<Record<string, unknown>>): AnswerRequest {
    const given = parseBody(request, body);
    const { instructions = null, previous_response_id: previous = null, tool_choice: choice } = given;
    const earlier = previous === null ? [] : this.#conversations.get(previous);
    if (earlier === undefined) {
      throw new ApiError(404, `there is no response ${JSON.stringify(previous)} in this episode`, {
        code: 'previous_response_not_found',
      });
    }
    const input: Item[] =
      typeof given.input === 'string' ? [{ type: 'message', role: 'user', content: given.input }] : given.input;
    const system: ChatMessage[] = instructions === null ? [] : [{ role: 'system', content: instructions }];
    const messages = [...system, ...earlier, ...this.#messages(input)];
    if (messages.length === 0) throw new ApiError(400, 'input: there is nothing to answer');
    const wantsLogprobs = given.include?.includes('message.output_text.logprobs') || given.top_logprobs != null;
    return {
      model: given.model,
      messages,
      tools: (given.tools ?? []).map(tool => toolOf(tool.name, tool.description, tool.parameters)),
      toolChoice: typeof choice === 'string' ? choice : choice ? 'required' : 'auto',
      toolName: typeof choice === 'object' ? choice?.name : undefined,
      format: formatOf('text.format', given.text?.format),
      maxTokens: given.max_output_tokens ?? undefined,
      stop: [],
      n: 1,
      topLogprobs: wantsLogprobs ? (given.top_logprobs ?? 0) : undefined,
      tokenIds: given.return_token_ids ? 'bundled' : undefined,
      stream: given.stream ?? false,
      includeUsage: true,
      overridden: overridden(given, { temperature: undefined, top_p: undefined }),
      echo: {
        instructions,
        previous_response_id: previous,
        tools: given.tools ?? [],
        tool_choice: choice ?? 'auto',
        max_output_tokens: given.max_output_tokens ?? null,
        metadata: body.metadata ?? {},
      },
    };
  }

  /** Items as messages: reasoning, text and calls that follow each other are one answer. */
  #messages(items: readonly Item[]): ChatMessage[] {
    const messages: ChatMessage[] = [];
    let thought = '';
    let isAnswer = false;
    for (const given of items) {
      const one = this.#resolve(given);
      if (one.type === 'function_call') {
        const called = { name: one.name, arguments: one.arguments };
        const call = { id: one.call_id, type: 'function', function: called } as const;
        const last = isAnswer ? messages.pop()! : { role: 'assistant', content: '' };
        const reasoning = thought === '' ? {} : { reasoning_content: thought };
        messages.push({ ...last, ...reasoning, tool_calls: [...(last.tool_calls ?? []), call] });
        isAnswer = true;
        thought = '';
      } else if (one.type === 'function_call_output') {
        messages.push({ role: 'tool', tool_call_id: one.call_id, content: textOf(one.output) });
        isAnswer = false;
      } else if (one.type === 'reasoning') {
        thought = (one.summary ?? []).map(({ text = '' }) => text).join('\n');
        isAnswer = false;
      } else {
        const role = one.role === 'developer' ? 'system' : one.role;
        const reasoning = role === 'assistant' && thought !== '' ? { reasoning_content: thought } : {};
        messages.push({ role, content: textOf(one.content), ...reasoning });
        isAnswer = role === 'assistant';
        thought = '';
      }
    }
    return messages;
  }

  #resolve(given: Item): Exclude<Item, { type: 'item_reference' }> {
    if (given.type !== 'item_reference') return given;
    const found = this.#items.get(given.id);
    if (found !== undefined) return found as Exclude<Item, { type: 'item_reference' }>;
    throw new ApiError(404, `there is no item ${JSON.stringify(given.id)} in this episode`);
  }
}
