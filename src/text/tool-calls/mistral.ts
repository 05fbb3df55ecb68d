import {
  callOf,
  listed,
  type MalformedCall,
  parseJson,
  splitReasoning,
  type ToolDialect,
  toolMessage,
  type WrittenCall,
} from './dialect.ts';
import { endOfJson } from './json-values.ts';

const MARK = '[TOOL_CALLS]';
const ARGUMENTS = '[ARGS]';

/**
 * Mistral: `[TOOL_CALLS]` and a JSON array of {"name", "arguments"}; from tokenizer v11 on, one mark for each call with
 * the name behind it and its arguments as a JSON object, `[ARGS]` between them or not.
 */
export const mistral: ToolDialect = {
  name: 'mistral',
  parse(answer) {
    const { reasoning, rest } = splitReasoning(answer);
    const [content, ...blocks] = rest.split(MARK);
    const written = rest.slice(content!.length).trim();
    return { content: content!.trim(), reasoning, calls: blocks.flatMap(read), written };
  },
  instructions: tools =>
    `You can call these tools, each described by one line of JSON:\n${listed(tools)}\n` +
    `To call, end your answer with ${MARK}[{"name": "<tool>", "arguments": {<arguments as JSON>}}], one object a call.`,
  result: toolMessage,
  stopStrings: [],
  marks: [MARK],
};

function read(block: string): (WrittenCall | MalformedCall)[] {
  const text = block.trim();
  if (!/^[[{]/.test(text)) return [named(text)];
  const parsed = parseJson(text.slice(0, endOfJson(text, 0)));
  if ('error' in parsed) return [{ kind: 'malformed', error: `the calls are not valid JSON: ${parsed.error}` }];
  const values: readonly unknown[] = Array.isArray(parsed.value) ? parsed.value : [parsed.value];
  return values.map(value => callOf(value, ['arguments', 'parameters']));
}

function named(text: string): WrittenCall | MalformedCall {
  const brace = text.indexOf('{');
  const name = text
    .slice(0, brace < 0 ? undefined : brace)
    .replace(ARGUMENTS, '')
    .trim();
  if (!/^[\w.-]+$/.test(name)) {
    return {
      kind: 'malformed',
      error: `after ${MARK} comes a JSON array of calls, or a tool's name and its arguments`,
    };
  }
  if (brace < 0) return { kind: 'malformed', name, error: 'the call has no arguments; write {} where it needs none' };
  const parsed = parseJson(text.slice(brace, endOfJson(text, brace)));
  if ('error' in parsed) return { kind: 'malformed', name, error: `the arguments are not valid JSON: ${parsed.error}` };
  return callOf({ name, arguments: parsed.value }, ['arguments']);
}
