import type { Message } from '../../episode/task.ts';
import type { Renderer } from '../../text/renderer.ts';

/**
 * Conversations for a service that takes text and gives text: one "token" a byte of UTF-8, and one that begins a message
 * of each role. Nothing here is a token of the served model, so what is recorded can be read and scored, not trained on.
 */

const END = 256;
const ROLES = ['system', 'user', 'assistant', 'tool'] as const;
const FIRST_ROLE = END + 1;

export const END_OF_ANSWER = END;

/** Bytes and message marks to text and back. */
export function transcriptRenderer(): Renderer {
  const encode = (text: string) => Int32Array.from(Buffer.from(text, 'utf8'));
  const message = ({ role, content }: Message) => [begin(role), ...encode(content), END];
  return {
    vocabularySize: FIRST_ROLE + ROLES.length,
    stopTokens: [END],
    encode,
    decode: (tokens, { special = false } = {}) => decode(tokens, special),
    prompt: messages => Int32Array.from([...messages.flatMap(message), begin('assistant')]),
    answer: ({ answer }) => Int32Array.from([...encode(answer.content), END]),
    extend: ({ context, added }) => ({
      kind: 'append',
      tokens: Int32Array.from([
        ...(context.at(-1) === END ? [] : [END]),
        ...added.flatMap(message),
        begin('assistant'),
      ]),
    }),
  };
}

/**
 * What the tokens say: messages, or text where no message was begun. Text that was fed between messages is the user's;
 * the mark that asks for the next answer is no message.
 */
export function readTranscript(tokens: Int32Array): { readonly text: string } | { readonly messages: Message[] } {
  if (!tokens.some(token => token >= FIRST_ROLE)) return { text: decode(tokens, false) };
  const messages: Message[] = [];
  let role: Message['role'] = 'user';
  let from = 0;
  const take = (end: number) => {
    const content = decode(tokens.subarray(from, end), false);
    if (content !== '') messages.push({ role, content });
  };
  tokens.forEach((token, at) => {
    if (token < END) return;
    take(at);
    from = at + 1;
    role = token === END ? 'user' : ROLES[token - FIRST_ROLE]!;
  });
  if (role !== 'assistant') take(tokens.length);
  return { messages };
}

/** Roles that a service does not know are the user's. */
function begin(role: string): number {
  const at = (ROLES as readonly string[]).indexOf(role);
  return FIRST_ROLE + (at < 0 ? ROLES.indexOf('user') : at);
}

function decode(tokens: ArrayLike<number>, special: boolean): string {
  const parts: string[] = [];
  let bytes: number[] = [];
  const flush = () => {
    parts.push(Buffer.from(bytes).toString('utf8'));
    bytes = [];
  };
  for (const token of Array.from(tokens)) {
    if (token < END) {
      bytes.push(token);
    } else if (special) {
      flush();
      parts.push(token === END ? '\n' : `<${ROLES[token - FIRST_ROLE]}> `);
    }
  }
  flush();
  return parts.join('');
}
