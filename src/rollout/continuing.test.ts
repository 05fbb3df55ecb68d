import { expect, it } from 'vitest';
import { DEFAULT_SAMPLING, type GenerateRequest } from '../engines/contracts.ts';
import { scriptedSampler } from '../testing/scripted-sampler.ts';
import { continuing } from './continuing.ts';

const request = (rest: Partial<GenerateRequest> = {}): GenerateRequest => ({
  tokens: Int32Array.of(1),
  params: { ...DEFAULT_SAMPLING, maxTokens: 3 },
  seed: 1,
  key: 'a',
  ...rest,
});
const setup = () => scriptedSampler({ answers: ({ tokens }) => [tokens.length, 50, 51, 52], gated: true });

it('goes on after each interruption, up to the length that was asked for', async () => {
  const sampler = setup();
  const answer = continuing(sampler).generate(request());
  for (const index of [0, 1]) {
    await sampler.arrived(index + 1);
    sampler.advance(index, 1);
    await sampler.pause({ mode: 'abort' });
    await sampler.resume();
  }
  await sampler.arrived(3);
  expect(sampler.requests.map(({ tokens, params }) => [tokens.length, params.maxTokens])).toEqual([
    [1, 3],
    [2, 2],
    [3, 1],
  ]);
  sampler.finish(2);
  const { tokens, finishReason, versions, logprobs } = await answer;
  expect([[...tokens], finishReason]).toEqual([[1, 2, 3], 'length']);
  expect([versions.length, logprobs.length]).toEqual([3, 3]);
});

it('gives what there is when its own signal aborts', async () => {
  const sampler = setup();
  const abort = new AbortController();
  const answer = continuing(sampler).generate(request({ signal: abort.signal }));
  await sampler.arrived(1);
  sampler.advance(0, 2);
  abort.abort();
  expect(await answer).toMatchObject({ tokens: Int32Array.of(1, 50), finishReason: 'abort' });
  expect(sampler.requests).toHaveLength(1);
});

it('has come to its length when the window is full', async () => {
  const sampler = scriptedSampler({ answers: () => [5, 6, 7], gated: true, contextLength: 3 });
  const answer = continuing(sampler).generate(request());
  await sampler.arrived(1);
  sampler.advance(0, 1);
  await sampler.pause({ mode: 'abort' });
  await sampler.resume();
  await sampler.arrived(2);
  sampler.finish(1);
  expect(await answer).toMatchObject({ tokens: Int32Array.of(5, 5), finishReason: 'length' });
});
