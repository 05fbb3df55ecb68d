import type { AnswerRequest, GivenAnswer, Reply } from './contracts.ts';
import { bundleOf, tokenLogprobs } from './parts.ts';

export interface OutputItem {
  readonly type: 'message' | 'function_call' | 'reasoning';
  readonly id: string;
  readonly [field: string]: unknown;
}

/** The items of an answer; ids derive from the reply's. */
export function outputOf({ topLogprobs }: AnswerRequest, id: string, answer: GivenAnswer): OutputItem[] {
  const own = id.replace(/^resp_/, '');
  const { reasoning, content: text, calls, finish } = answer;
  const status = finish === 'length' ? 'incomplete' : 'completed';
  const logprobs = topLogprobs === undefined ? {} : { logprobs: tokenLogprobs(answer.tokens) };
  const items: OutputItem[] = [
    ...(reasoning === undefined
      ? []
      : [{ type: 'reasoning', id: `rs_${own}`, summary: [{ type: 'summary_text', text: reasoning }] } as const]),
    ...(text === '' && calls.length > 0
      ? []
      : [
          {
            type: 'message',
            id: `msg_${own}`,
            role: 'assistant',
            status,
            content: [{ type: 'output_text', text, annotations: [], ...logprobs }],
          } as const,
        ]),
    ...calls.map(
      (call, i) =>
        ({
          type: 'function_call',
          id: `fc_${own}_${i}`,
          call_id: call.id,
          name: call.name,
          arguments: call.arguments,
          status: 'completed',
        }) as const,
    ),
  ];
  return answer.ids === undefined ? items : [...items.slice(0, -1), { ...items.at(-1)!, ...bundleOf(answer.ids) }];
}

/** The response object; without a reply as it is before anything was sampled. */
export function responseBody(asked: AnswerRequest, reply: Pick<Reply, 'id' | 'created' | 'model'> & Partial<Reply>) {
  const answer = reply.answers?.[0];
  const isCut = answer?.finish === 'length';
  const { usage } = reply;
  return {
    id: reply.id,
    object: 'response',
    created_at: reply.created,
    status: answer === undefined ? 'in_progress' : isCut ? 'incomplete' : 'completed',
    error: null,
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    model: reply.model,
    output: answer === undefined ? [] : outputOf(asked, reply.id, answer),
    parallel_tool_calls: true,
    temperature: null,
    top_p: null,
    text: { format: { type: 'text' } },
    truncation: 'disabled',
    ...asked.echo,
    usage:
      usage === undefined
        ? null
        : {
            input_tokens: usage.prompt,
            input_tokens_details: { cached_tokens: usage.replayed },
            output_tokens: usage.completion,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: usage.prompt + usage.completion,
          },
  };
}
