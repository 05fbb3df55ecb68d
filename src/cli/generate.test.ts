import { describe, expect, it } from 'vitest';
import { resolve } from '../config/load.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { scriptedSampler } from '../testing/scripted-sampler.ts';
import { command, generate } from './generate.ts';
import { TextStream } from './stream-text.ts';

const renderer = byteRenderer();

function context(...argv: string[]) {
  const written: string[] = [];
  const { values } = resolve(command.options, { argv: ['--pretrain', 'tiny', ...argv], cwd: '/' });
  const interrupt = { signal: new AbortController().signal, dispose: () => undefined };
  return { written, values, interrupt, stdout: { write: (text: string) => written.push(text) } };
}

describe('generate', () => {
  it('streams the answer to a raw prompt', async () => {
    const sampler = scriptedSampler({ answers: () => 'héllo' });
    const it = context('--rollout.temperature', '0.5', '--rollout.top_k', '3', '--train.seed', '7');
    const generation = await generate({ sampler, renderer }, 'hi', it);
    expect(it.written.join('')).toBe('héllo\n');
    expect(it.written.length).toBeGreaterThan(3);
    expect(generation.finishReason).toBe('stop');
    const [request] = sampler.requests;
    expect(renderer.decode(request!.tokens)).toBe('hi');
    expect(request).toMatchObject({
      seed: 7,
      params: { temperature: 0.5, topK: 3, topP: 1, maxTokens: 4094, stopTokens: renderer.stopTokens },
    });
  });

  it('renders a chat and limits the answer', async () => {
    const sampler = scriptedSampler({ answers: () => 'a long answer' });
    const it = context('--data.apply_chat_template', '--rollout.max_new_tokens', '6');
    const generation = await generate({ sampler, renderer }, 'hi', it);
    expect(it.written.join('')).toBe('a long\n');
    expect(generation.finishReason).toBe('length');
    expect(sampler.requests[0]!.tokens).toEqual(renderer.prompt([{ role: 'user', content: 'hi' }]));
  });

  it('refuses a prompt that fills the window', async () => {
    const sampler = scriptedSampler({ answers: () => '', contextLength: 4 });
    await expect(generate({ sampler, renderer }, 'hello', context())).rejects.toThrow(
      'the prompt has 5 tokens; the model sees 4 tokens, prompt and answer together; shorten it',
    );
  });
});

it('gives out whole characters only, and what is left at the end', () => {
  const written: string[] = [];
  const stream = new TextStream(
    tokens => Buffer.from(tokens).toString('utf8'),
    text => written.push(text),
  );
  for (const byte of Buffer.from('a€b')) stream.push(byte);
  expect(written).toEqual(['a', '€', 'b']);
  stream.push(0xe2);
  expect(written).toEqual(['a', '€', 'b']);
  stream.finish();
  expect(written).toEqual(['a', '€', 'b', '\ufffd']);
});
