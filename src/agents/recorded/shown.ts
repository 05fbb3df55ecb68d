import type { Message } from '../../episode/task.ts';
import type { ToolDialect, ToolSchema } from '../../text/tool-calls/dialect.ts';
import type { ChatMessage } from './dialects/contracts.ts';

/**
 * A conversation and its tools as the chat template is given them. Where the template shows no tools by itself, a system
 * message does, calls of foreign assistant messages become text, and results are told in the dialect's own way.
 */
export function shown(
  messages: readonly ChatMessage[],
  tools: readonly ToolSchema[],
  dialect: ToolDialect,
  native: ToolDialect | undefined,
): { readonly messages: readonly Message[]; readonly tools?: readonly ToolSchema[] } {
  if (native !== undefined && native.name === dialect.name) {
    return tools.length === 0 ? { messages } : { messages, tools };
  }
  const told = messages.map((message): Message => {
    const { role, content, tool_calls: calls = [], tool_call_id: id } = message;
    if (role === 'tool') return dialect.result({ id: id ?? '', name: nameOf(messages, id), content });
    if (calls.length === 0) return message;
    const written = calls.map(({ function: called }) => JSON.stringify(called));
    return { role, content: [content, ...written].filter(text => text !== '').join('\n') };
  });
  if (tools.length === 0) return { messages: told };
  const instructions = dialect.instructions(tools);
  const [first, ...rest] = told;
  if (first?.role === 'system') {
    return { messages: [{ ...first, content: `${first.content}\n\n${instructions}` }, ...rest] };
  }
  return { messages: [{ role: 'system', content: instructions }, ...told] };
}

/** Name of the tool that a call was of. */
function nameOf(messages: readonly ChatMessage[], id: string | undefined): string {
  const calls = messages.flatMap(({ tool_calls: calls = [] }) => calls);
  return calls.findLast(call => call.id === id)?.function.name ?? '';
}
