import type { ChatMessage, GivenAnswer } from './dialects/contracts.ts';

/**
 * Whether a message that a client sends back is an answer it was given. Clients write history anew: they indent JSON,
 * drop reasoning, turn null into '' and trim. What they say is compared, not how.
 *   'id'    the ids of its tool calls are those that were given, and nothing it says differs
 *   'text'  the same text and the same calls, under other ids or none
 */
export function sameAnswer(message: ChatMessage, given: GivenAnswer): 'id' | 'text' | undefined {
  const calls = message.tool_calls ?? [];
  if (calls.length !== given.calls.length) return undefined;
  const isSame = calls.every(({ function: called }, i) => {
    const { name, arguments: args } = given.calls[i]!;
    return called.name === name && canonical(called.arguments) === canonical(args);
  });
  if (!isSame) return undefined;
  const { content, reasoning_content: reasoning } = message;
  if (reasoning !== undefined && normal(reasoning) !== normal(given.reasoning ?? '')) return undefined;
  const ids = calls.length > 0 && calls.every(({ id }, i) => id === given.calls[i]!.id);
  // Many clients drop what was said beside a call.
  if (ids && content === '') return 'id';
  if (normal(content) !== normal(given.content)) return undefined;
  return ids ? 'id' : 'text';
}

/** The text, white space aside. */
export function normal(text: string): string {
  return text.trim().replace(/\s+/g, ' ');
}

/** JSON with its keys in order; text that is no JSON as it is. */
export function canonical(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(sorted(value));
  try {
    return JSON.stringify(sorted(JSON.parse(value)));
  } catch {
    return value; // arguments need not be JSON: they are what the policy wrote
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
