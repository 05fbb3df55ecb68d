import type { Tool } from '../../envs/tools/contracts.ts';
import type { WrittenCall } from '../../text/tool-calls/dialect.ts';
import { toolSchema } from '../../text/tool-calls/schema.ts';

/** Calls as text in tags, `<python>print(1)</python>`: of tools with one argument that is text. */
export interface Tag {
  readonly tool: Tool;
  /** Name of the argument. */
  readonly argument: string;
}

/** @throws Error for a tool whose arguments a tag cannot hold */
export function tagOf(tool: Tool): Tag {
  const { parameters } = toolSchema(tool).function;
  const { properties = {}, required = [] } = parameters as {
    readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
    readonly required?: readonly string[];
  };
  const [argument, ...more] = required;
  if (argument !== undefined && more.length === 0 && properties[argument]?.type === 'string') return { tool, argument };
  throw new Error(
    `tool ${tool.name} does not take one argument that is text, as a tag holds; name a dialect for its calls`,
  );
}

/**
 * The first block of an answer that is complete, `<name>…</name>` or a fenced block whose language is the name of the
 * tool, and where it ends. White space around what it holds is left out.
 */
export function taggedCall(
  answer: string,
  tags: readonly Tag[],
): { readonly call: WrittenCall; readonly end: number } | undefined {
  let first: { readonly call: WrittenCall; readonly end: number } | undefined;
  for (const { tool, argument } of tags) {
    const { name } = tool;
    for (const [open, close] of [
      [`<${name}>`, `</${name}>`],
      [`\`\`\`${name}`, '```'],
      [`\`\`\`\n${name}`, '```'],
    ] as const) {
      const start = answer.indexOf(open);
      const at = start < 0 ? -1 : answer.indexOf(close, start + open.length);
      if (at < 0) continue;
      const end = at + close.length;
      if (first !== undefined && end >= first.end) continue;
      const text = answer.slice(start + open.length, at).trim();
      first = { call: { kind: 'call', name, arguments: { [argument]: text } }, end };
    }
  }
  return first;
}

export function tagInstructions(tags: readonly Tag[]): string {
  const lines = tags.map(({ tool, argument }) => `<${tool.name}>${argument}</${tool.name}>: ${tool.description}`);
  return ['Before you answer you may use a tool, once in each message, by writing:', ...lines].join('\n');
}
