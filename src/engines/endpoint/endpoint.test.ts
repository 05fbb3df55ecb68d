import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { DEFAULT_SAMPLING, type GenerateRequest } from '../contracts.ts';
import { endpointSampler } from './sampler.ts';
import { END_OF_ANSWER, readTranscript, transcriptRenderer } from './transcript.ts';

const renderer = transcriptRenderer();
const request = (tokens: Int32Array, maxTokens = 8): GenerateRequest => ({
  tokens,
  params: { ...DEFAULT_SAMPLING, temperature: 0.5, maxTokens },
  seed: 7,
  key: '',
});

let server: Server | undefined;
afterEach(() => server?.close());

interface Received {
  readonly path: string | undefined;
  readonly key: string | undefined;
  readonly body: Record<string, unknown>;
}

/** A service that gives the answers in turn and keeps what it was asked. */
async function serve(answers: readonly (object | number)[]): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  server = createServer(async (incoming: IncomingMessage, response) => {
    let text = '';
    for await (const chunk of incoming) text += chunk;
    received.push({ path: incoming.url, key: incoming.headers.authorization, body: JSON.parse(text) });
    const answer = answers[received.length - 1]!;
    if (typeof answer === 'number') response.writeHead(answer).end('not now');
    else response.end(JSON.stringify(answer));
  });
  await new Promise<void>(resolve => server!.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, received };
}
const chat = (content: string, finish_reason = 'stop') => ({ choices: [{ message: { content }, finish_reason }] });

it('conversations survive their way through bytes', () => {
  const messages = [
    { role: 'system', content: 'be brief – ärgerlich' },
    { role: 'user', content: 'hi' },
  ];
  const context = renderer.prompt(messages);
  expect(readTranscript(context)).toEqual({ messages });
  const answered = Int32Array.from([...context, ...renderer.encode('yes'), END_OF_ANSWER]);
  const added = [{ role: 'tool', content: '3' }];
  const more = renderer.extend({
    context: answered,
    earlier: messages,
    answer: { role: 'assistant', content: 'yes' },
    added,
  });
  const whole = Int32Array.from([...answered, ...more.tokens]);
  expect(readTranscript(whole)).toEqual({ messages: [...messages, { role: 'assistant', content: 'yes' }, ...added] });
  // Feedback as plain text is the user's.
  const plain = Int32Array.from([...answered, ...renderer.encode('and now?')]);
  expect(readTranscript(plain)).toMatchObject({ messages: [{}, {}, {}, { role: 'user', content: 'and now?' }] });
  expect(readTranscript(renderer.encode('1+2='))).toEqual({ text: '1+2=' });
});

it('asks for chat completions of conversations and completions of text, with the key', async () => {
  const { url, received } = await serve([chat('grüß dich'), chat('cut', 'length'), { choices: [{ text: '3' }] }]);
  const sampler = endpointSampler({ url, model: 'm', key: 'secret' });
  const first = await sampler.generate(request(renderer.prompt([{ role: 'user', content: 'hallo' }])));
  expect(renderer.decode(first.tokens)).toBe('grüß dich');
  expect([first.finishReason, first.tokens.at(-1)]).toEqual(['stop', END_OF_ANSWER]);
  const second = await sampler.generate(
    request(renderer.prompt([{ role: 'user', content: 'x' }]), sampler.contextLength - 9),
  );
  expect([second.finishReason, renderer.decode(second.tokens)]).toEqual(['length', 'cut']);
  await sampler.generate(request(renderer.encode('1+2=')));
  const settings = { model: 'm', temperature: 0.5, seed: 7 };
  expect(received).toEqual([
    {
      path: '/v1/chat/completions',
      key: 'Bearer secret',
      body: { ...settings, max_tokens: 8, messages: [{ role: 'user', content: 'hallo' }] },
    },
    {
      path: '/v1/chat/completions',
      key: 'Bearer secret',
      body: { ...settings, messages: [{ role: 'user', content: 'x' }] },
    },
    { path: '/v1/completions', key: 'Bearer secret', body: { ...settings, max_tokens: 8, prompt: '1+2=' } },
  ]);
});

it('asks again where the service is busy, and says what it refused', async () => {
  const { url, received } = await serve([503, 429, chat('ok'), 401, { nothing: true }, 500, 500]);
  const sampler = endpointSampler({ url, model: 'm', key: 'secret', attempts: 3, backoffMs: 0 });
  const ask = () => sampler.generate(request(renderer.prompt([{ role: 'user', content: 'x' }])));
  expect(renderer.decode((await ask()).tokens)).toBe('ok');
  expect(received).toHaveLength(3);
  await expect(ask()).rejects.toThrow(/chat\/completions: 401 not now \(attempt 1 of 3\)$/);
  await expect(ask()).rejects.toThrow(/something else than a completion/);
  const hurried = endpointSampler({ url, model: 'm', attempts: 2, backoffMs: 0 });
  await expect(hurried.generate(request(renderer.encode('x')))).rejects.toThrow(
    /completions: 500 not now \(attempt 2 of 2\)$/,
  );
  const failing = await ask().catch((error: Error) => error.message);
  expect(failing).not.toContain('secret');
});
