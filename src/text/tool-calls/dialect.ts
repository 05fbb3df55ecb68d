import type { Message } from '../../episode/task.ts';

/** How a family of models writes tool calls in its answers, and how results are given back. */

/** A tool as chat templates and the OpenAI API know it. */
export interface ToolSchema {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description: string;
    /** JSON Schema of the arguments, an object. */
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

/** A call that can be made. */
export interface WrittenCall {
  readonly kind: 'call';
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Something that was meant as a call and is none. */
export interface MalformedCall {
  readonly kind: 'malformed';
  /** The name, where it could be read. */
  readonly name?: string;
  /** What is wrong, in words for the model. */
  readonly error: string;
}

export interface ParsedAnswer {
  /** What is said beside the calls, white space at its ends left out. */
  readonly content: string;
  /** What was thought before (between `<think>` and `</think>`), undefined where the answer has none. */
  readonly reasoning: string | undefined;
  /** In the order in which they were written. */
  readonly calls: readonly (WrittenCall | MalformedCall)[];
  /** The calls as they were written: an answer of this alone makes the same calls. '' where there are none. */
  readonly written: string;
}

export interface ToolDialect {
  readonly name: string;
  /** `answer` is the policy's text with special tokens, its stop token left out. Never throws. */
  parse(answer: string): ParsedAnswer;
  /** For a system message, where the chat template does not show tools by itself. */
  instructions(tools: readonly ToolSchema[]): string;
  /** One message for each result. `role: 'tool'` needs a template that renders it. */
  result(result: { readonly id: string; readonly name: string; readonly content: string }): Message;
  /** An answer ends here, so that the policy does not write the result itself. */
  readonly stopStrings: readonly string[];
  /** A call begins with one of these: what comes before is said. Where there are none only a whole answer can be read. */
  readonly marks: readonly string[];
}

/**
 * Cuts reasoning off the beginning: everything up to `</think>`. Templates may open it themselves, so the opening tag
 * need not be part of the answer. Reasoning that was never closed is all there is: calls inside it were not made.
 */
export function splitReasoning(answer: string): { readonly reasoning: string | undefined; readonly rest: string } {
  const open = /^\s*<think>/.exec(answer);
  const close = answer.indexOf('</think>');
  if (close < 0) {
    return open === null ? { reasoning: undefined, rest: answer } : { reasoning: trimmed(open[0].length), rest: '' };
  }
  return { reasoning: trimmed(open?.[0].length ?? 0, close), rest: answer.slice(close + '</think>'.length) };

  function trimmed(start: number, end?: number): string {
    return answer.slice(start, end).trim();
  }
}

/** A call of what JSON says, whose arguments are under one of `keys`. */
export function callOf(value: unknown, keys: readonly string[]): WrittenCall | MalformedCall {
  if (!isObject(value)) return { kind: 'malformed', error: 'a call must be a JSON object' };
  const { name } = value;
  if (typeof name !== 'string' || name === '') {
    return { kind: 'malformed', error: 'a call needs "name", the name of a tool as text' };
  }
  const key = keys.find(candidate => candidate in value);
  let given = key === undefined ? {} : value[key];
  if (typeof given === 'string') {
    // Some checkpoints write the arguments as JSON inside JSON, as the OpenAI API does.
    const inner = parseJson(given);
    if ('error' in inner) return { kind: 'malformed', name, error: `"${key}" is not valid JSON: ${inner.error}` };
    given = inner.value;
  }
  if (!isObject(given)) return { kind: 'malformed', name, error: `"${key}" must be a JSON object` };
  return { kind: 'call', name, arguments: given };
}

export function parseJson(text: string): { readonly value: unknown } | { readonly error: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The result as templates with a tool role expect it. */
export function toolMessage({ id, name, content }: { id: string; name: string; content: string }): Message {
  return { role: 'tool', tool_call_id: id, name, content };
}

/** The schemas as one JSON object a line. */
export function listed(tools: readonly ToolSchema[]): string {
  return tools.map(tool => JSON.stringify(tool)).join('\n');
}
