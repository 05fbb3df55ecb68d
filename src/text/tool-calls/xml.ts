import {
  listed,
  type MalformedCall,
  parseJson,
  splitReasoning,
  type ToolDialect,
  toolMessage,
  type WrittenCall,
} from './dialect.ts';
import { taggedBlocks } from './hermes.ts';

/**
 * Qwen3-Coder: inside `<tool_call>`, `<function=NAME>` with one `<parameter=KEY>` block for each argument. A value is
 * JSON where it can be read as a number, boolean, null, object or array, and text otherwise. It needs no quoting, which
 * is why it suits arguments that are code.
 */
export const xml: ToolDialect = {
  name: 'xml',
  parse(answer) {
    const { reasoning, rest } = splitReasoning(answer);
    const { content, blocks, written } = taggedBlocks(rest, '<tool_call>', '</tool_call>');
    return { content, reasoning, calls: blocks.map(read), written };
  },
  instructions: tools =>
    `You can call these tools, each described by one line of JSON:\n${listed(tools)}\n` +
    'To call one, write\n<tool_call>\n<function=TOOL>\n<parameter=NAME>\nvalue\n</parameter>\n</function>\n</tool_call>\n' +
    'with one parameter block for each argument.',
  result: toolMessage,
  stopStrings: [],
  marks: ['<tool_call>'],
};

function read(block: string): WrittenCall | MalformedCall {
  const head = /^<function=([^>\s]+)>/.exec(block);
  if (head === null) return { kind: 'malformed', error: 'a call begins with <function=TOOL>' };
  const name = head[1]!;
  const given: Record<string, unknown> = {};
  const parameter = /<parameter=([^>\s]+)>/g;
  parameter.lastIndex = head[0].length;
  for (let open = parameter.exec(block); open !== null; open = parameter.exec(block)) {
    const start = parameter.lastIndex;
    const end = block.indexOf('</parameter>', start);
    if (end < 0) return { kind: 'malformed', name, error: `the parameter ${open[1]} has no </parameter>` };
    // The template puts each value on lines of its own.
    const value = block
      .slice(start, end)
      .replace(/^\r?\n/, '')
      .replace(/\r?\n$/, '');
    given[open[1]!] = readValue(value);
    parameter.lastIndex = end;
  }
  return { kind: 'call', name, arguments: given };
}

function readValue(text: string): unknown {
  if (!/^\s*(?:[-\d[{]|true|false|null)/.test(text)) return text;
  const parsed = parseJson(text);
  return 'error' in parsed ? text : parsed.value;
}
