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

const PYTHON_TAG = '<|python_tag|>';

/**
 * Llama 3.1 to 3.3 with JSON tools: the whole answer is a JSON object {"name", "parameters"}, or several with `;`
 * between them, `<|python_tag|>` before them or not. An answer that begins otherwise calls nothing: a JSON object in
 * the middle of a sentence is an answer about JSON.
 */
export const llamaJson: ToolDialect = {
  name: 'llama',
  parse(answer) {
    const { reasoning, rest } = splitReasoning(answer);
    const text = rest.trim();
    const tagged = text.startsWith(PYTHON_TAG);
    const body = tagged ? text.slice(PYTHON_TAG.length).trim() : text;
    if (!body.startsWith('{')) {
      const calls = tagged ? [{ kind: 'malformed', error: 'a call must be a JSON object' } as const] : [];
      return { content: tagged ? '' : text, reasoning, calls, written: tagged ? text : '' };
    }
    const calls = readAll(body);
    // {"answer": 4} without the tag is an answer in JSON, not a broken call.
    if (!tagged && !calls.some(call => call.kind === 'call') && !/"name"\s*:/.test(body)) {
      return { content: text, reasoning, calls: [], written: '' };
    }
    return { content: '', reasoning, calls, written: text };
  },
  instructions: tools =>
    `You can call these tools, each described by one line of JSON:\n${listed(tools)}\n` +
    'To call one, answer with nothing but {"name": "<tool>", "parameters": {<arguments as JSON>}}; put `;` between several.',
  result: toolMessage,
  stopStrings: [],
  marks: ['{', PYTHON_TAG],
};

function readAll(body: string): (WrittenCall | MalformedCall)[] {
  const calls: (WrittenCall | MalformedCall)[] = [];
  for (let at = 0; at < body.length; ) {
    const end = endOfJson(body, at) ?? body.length;
    const parsed = parseJson(body.slice(at, end));
    calls.push(
      'error' in parsed
        ? { kind: 'malformed', error: `the call is not valid JSON: ${parsed.error}` }
        : callOf(parsed.value, ['parameters', 'arguments']),
    );
    const next = /^\s*;\s*(?=\{)/.exec(body.slice(end));
    if (next === null) break;
    at = end + next[0].length;
  }
  return calls;
}
