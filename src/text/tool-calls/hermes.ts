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

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';

/**
 * Hermes 2 Pro, Qwen2.5, Qwen3, SmolLM3: each call is a JSON object {"name", "arguments"} between `<tool_call>` and
 * `</tool_call>`. The last block may lack its end, as when the end is the answer's stop token.
 */
export const hermes: ToolDialect = {
  name: 'hermes',
  parse(answer) {
    const { reasoning, rest } = splitReasoning(answer);
    const { content, blocks, written } = taggedBlocks(rest, OPEN, CLOSE);
    return { content, reasoning, calls: blocks.map(read), written };
  },
  instructions: tools =>
    `You can call these tools, each described by one line of JSON:\n${listed(tools)}\n` +
    `To call one, write ${OPEN}{"name": "<tool>", "arguments": {<arguments as JSON>}}${CLOSE}. ` +
    'Several calls may follow each other; the results are given to you before your next answer.',
  result: toolMessage,
  stopStrings: [],
  marks: [OPEN],
};

function read(block: string): WrittenCall | MalformedCall {
  const parsed = parseJson(block);
  if ('error' in parsed) return { kind: 'malformed', error: `the call is not valid JSON: ${parsed.error}` };
  return callOf(parsed.value, ['arguments', 'parameters']);
}

/** What is between the tags, the text outside of them, and the blocks with their tags. */
export function taggedBlocks(
  text: string,
  open: string,
  close: string,
): { readonly content: string; readonly blocks: readonly string[]; readonly written: string } {
  const blocks: string[] = [];
  const whole: string[] = [];
  let content = '';
  let at = 0;
  for (;;) {
    const start = text.indexOf(open, at);
    if (start < 0) break;
    content += text.slice(at, start);
    const end = text.indexOf(close, start + open.length);
    blocks.push(text.slice(start + open.length, end < 0 ? undefined : end).trim());
    const next = end < 0 ? text.length : end + close.length;
    whole.push(text.slice(start, next).trim());
    if (end < 0) return { content: content.trim(), blocks, written: whole.join('\n') };
    at = next;
  }
  return { content: (content + text.slice(at)).trim(), blocks, written: whole.join('\n') };
}
