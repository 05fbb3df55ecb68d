import { type AnswerRequest, type Reply, type ReplyStream, restOf, type ServerEvent } from './contracts.ts';
import { type OutputItem, outputOf, responseBody } from './responses-output.ts';

/** The events of a streamed response, numbered in order. */
export function responsesStream(asked: AnswerRequest, head: Pick<Reply, 'id' | 'created' | 'model'>): ReplyStream {
  let number = 0;
  let given = '';
  const event = (type: string, data: object): ServerEvent => ({
    event: type,
    data: { type, sequence_number: number++, ...data },
  });
  const start = () => {
    const response = responseBody(asked, head);
    return [event('response.created', { response }), event('response.in_progress', { response })];
  };
  const emptyPart = { type: 'output_text', text: '', annotations: [] };
  const openMessage = (item: { readonly id: string }, output_index: number) => [
    event('response.output_item.added', {
      output_index,
      item: { type: 'message', id: item.id, role: 'assistant', status: 'in_progress', content: [] },
    }),
    event('response.content_part.added', { item_id: item.id, output_index, content_index: 0, part: emptyPart }),
  ];
  const textDelta = (item: { readonly id: string }, output_index: number, delta: string) =>
    event('response.output_text.delta', { item_id: item.id, output_index, content_index: 0, delta, logprobs: [] });

  const closeMessage = (item: OutputItem, output_index: number, part: { readonly text: string }) => {
    const at = { item_id: item.id, output_index, content_index: 0 };
    return [
      event('response.output_text.done', { ...at, text: part.text, logprobs: [] }),
      event('response.content_part.done', { ...at, part }),
      event('response.output_item.done', { output_index, item }),
    ];
  };
  const call = (item: OutputItem, output_index: number) => {
    const at = { item_id: item.id, output_index };
    return [
      event('response.output_item.added', { output_index, item: { ...item, arguments: '', status: 'in_progress' } }),
      event('response.function_call_arguments.delta', { ...at, delta: item.arguments }),
      event('response.function_call_arguments.done', { ...at, arguments: item.arguments }),
      event('response.output_item.done', { output_index, item }),
    ];
  };
  const reasoning = (item: OutputItem, output_index: number) => [
    event('response.output_item.added', { output_index, item: { ...item, summary: [] } }),
    event('response.output_item.done', { output_index, item }),
  ];
  // Text is given out early only where it is the whole answer, so it is the first item.
  const early = { id: `msg_${head.id.replace(/^resp_/, '')}` };

  return {
    text(piece) {
      const before = given === '' ? [...start(), ...openMessage(early, 0)] : [];
      given += piece;
      return [...before, textDelta(early, 0, piece)];
    },
    finish(reply) {
      const answer = reply.answers[0]!;
      const events = given === '' ? start() : [];
      for (const [index, item] of outputOf(asked, reply.id, answer).entries()) {
        if (item.type === 'function_call') events.push(...call(item, index));
        else if (item.type === 'reasoning') events.push(...reasoning(item, index));
        else {
          if (given === '') events.push(...openMessage(item, index));
          const rest = restOf(answer.content, given);
          if (rest !== '') events.push(textDelta(item, index, rest));
          const [part] = item.content as readonly { readonly text: string }[];
          events.push(...closeMessage(item, index, part!));
        }
      }
      const type = answer.finish === 'length' ? 'response.incomplete' : 'response.completed';
      return [...events, event(type, { response: responseBody(asked, reply) })];
    },
  };
}
