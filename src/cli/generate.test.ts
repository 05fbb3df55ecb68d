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

  it('ends before a stop string, of which nothing is shown, or behind it', async () => {
    for (const [include, shown] of [
      [[], 'one\n'],
      [['--rollout.include_stop_str_in_output'], 'one</end>\n'],
    ] as const) {
      const sampler = scriptedSampler({ answers: () => 'one</end> two' });
      const it = context('--rollout.stop', '</end>', 'zzz', '--rollout.min_p', '0.1', ...include);
      const generation = await generate({ sampler, renderer }, 'hi', it);
      expect(generation).toMatchObject({ finishReason: 'stop', stopString: '</end>' });
      expect(it.written.join('')).toBe(shown);
      expect(sampler.requests[0]!.params).toMatchObject({ minP: 0.1, stopStrings: ['</end>', 'zzz'] });
    }
  });

  it.each([
    [['\n\n'], ['\n\n']],
    [['a, b'], ['a, b']],
    [
      ['1', ' x'],
      ['1', ' x'],
    ],
  ])('takes the words %j as stop strings as they are', async (words, stopStrings) => {
    const sampler = scriptedSampler({ answers: () => 'hello' });
    await generate({ sampler, renderer }, 'hi', context('--rollout.stop', ...words));
    expect(sampler.requests[0]!.params.stopStrings).toEqual(stopStrings);
  });

  it('shows log-probs of tokens, and of the most probable ones', async () => {
    const [a, b] = [...renderer.encode('ab')];
    const distribution = new Array<number>(renderer.vocabularySize).fill(-9);
    distribution[a!] = -0.25;
    distribution[b!] = -1.5;
    const answers = () => [{ token: b!, logprob: -1.5, distribution }];
    const two = context('--logprobs', '2');
    await generate({ sampler: scriptedSampler({ answers }), renderer }, 'hi', two);
    expect(two.written.join('')).toBe('b\n\n"b" -1.500 | "a" -0.250  "b" -1.500\n');
    const none = context('--logprobs', '0');
    await generate({ sampler: scriptedSampler({ answers }), renderer }, 'hi', none);
    expect(none.written.join('')).toBe('b\n\n"b" -1.500\n');
  });

  it.each([
    [['--rollout.min_p', '1'], /rollout.min_p.* 1/],
    [['--rollout.top_p', '0'], /rollout.top_p.* 0/],
    [['--rollout.top_k', '-1'], /rollout.top_k.* -1/],
    [['--rollout.temperature', '-0.5'], /rollout.temperature.* -0.5/],
    [['--logprobs', '-1'], /logprobs.* -1/],
    [['--train.seed', '-1'], /train.seed.* -1/],
  ])('refuses %j', (argv, message) => {
    expect(() => context(...argv)).toThrow(message);
  });

  it('takes the most probable tokens at temperature 0', async () => {
    const sampler = scriptedSampler({ answers: () => 'hello' });
    await generate({ sampler, renderer }, 'hi', context('--rollout.temperature', '0'));
    expect(sampler.requests[0]!.params.temperature).toBe(0);
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

it('holds back what may become a stop string', () => {
  const written: string[] = [];
  const stream = new TextStream(
    tokens => Buffer.from(tokens).toString('utf8'),
    text => written.push(text),
    ['END'],
  );
  for (const byte of Buffer.from('aENxEND')) stream.push(byte);
  stream.finish('END');
  expect(written).toEqual(['a', 'ENx']);
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
