import { afterEach } from 'vitest';
import type { Executor } from '../../src/agents/contracts.ts';
import {
  type RecordedAgentOptions,
  type RecordedRun,
  recordedAgent,
} from '../../src/agents/recorded/recorded-agent.ts';
import type { Task } from '../../src/episode/task.ts';
import { byteRenderer } from '../../src/testing/byte-tokenizer.ts';
import type { TestContextOptions } from '../../src/testing/executor-context.ts';
import { chatRenderer } from '../../src/text/chat-renderer.ts';
import { chatTemplate } from '../../src/text/template.ts';
import { hermesRenderer } from './hermes-renderer.ts';
import { scriptedEpisode } from './scripted-episode.ts';

export const task: Task = { id: 't', prompt: '2+3', label: '5', metadata: {} };
const bytes = byteRenderer();
export const renderer = hermesRenderer;
/** Shows no reasoning but that of the last answer. */
export const forgetful = chatRenderer({
  codec: bytes,
  stopTokens: bytes.stopTokens,
  template: chatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}" +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  ),
});

// biome-ignore lint/suspicious/noExplicitAny: replies are read as a client in JavaScript reads them
export type Json = any;
export type Message = Record<string, unknown>;

export const tools = [
  { type: 'function', function: { name: 'add', description: 'Adds.', parameters: { type: 'object' } } },
];
export const written = (name: string, given: unknown) =>
  `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;

export async function post({ baseURL, apiKey }: RecordedRun, path: string, body: unknown, headers = {}): Promise<Json> {
  const response = await fetch(`${baseURL}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, headers: response.headers, text, ...(isJson ? JSON.parse(text) : {}) };
}

export const ask = (run: RecordedRun, messages: readonly Message[], more: Message = {}, headers = {}): Promise<Json> =>
  post(run, 'chat/completions', { model: 'policy', messages, ...more }, headers);
export const said = (reply: Json): Message => reply.choices[0].message;
export const user = (content: string) => ({ role: 'user', content });

/** Closed after each test. */
export const agents: Executor[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.close?.();
});

/** One episode of a program: its answers are the lines, in order. Gives what the policy was shown, too. */
export function run(
  program: RecordedAgentOptions['run'],
  lines: readonly string[] | NonNullable<TestContextOptions['answers']>,
  options: Partial<RecordedAgentOptions> = {},
  context: TestContextOptions = {},
) {
  const agent = recordedAgent({ run: program, ...options });
  agents.push(agent);
  return scriptedEpisode(agent, task, lines, { renderer, ...context });
}
