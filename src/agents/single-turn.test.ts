import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Task } from '../episode/task.ts';
import { toTrajectories } from '../episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../episode/validate.ts';
import { perSample, type RewardFunction, type RewardInput } from '../rewards/contracts.ts';
import { BYTE_SPECIAL } from '../testing/byte-tokenizer.ts';
import { type TestContextOptions, testContext } from '../testing/executor-context.ts';
import { type SingleTurnOptions, singleTurn } from './single-turn.ts';

const task: Task = { id: 'sum', prompt: '1+1=', label: '2', metadata: {} };
const exact = perSample(({ text, label }) => (text === label ? 1 : 0));

afterEach(() => {
  vi.useRealTimers();
});

async function run(options: TestContextOptions, agent: Partial<SingleTurnOptions> = {}, given: Partial<Task> = {}) {
  const context = testContext(options);
  const episode = await singleTurn({ reward: exact, ...agent }).run({ ...task, ...given }, context);
  validateEpisode(episode, { vocabularySize: context.renderer.vocabularySize });
  for (const trajectory of toTrajectories(episode)) validateTrajectory(trajectory);
  return { context, episode };
}

describe('singleTurn', () => {
  it('records prompt, answer and reward', async () => {
    const inputs: RewardInput[] = [];
    const reward: RewardFunction = batch => {
      inputs.push(...batch);
      return [{ reward: 0.5, score: 1, metrics: { format: 1 } }];
    };
    const { context, episode } = await run({ answers: () => '2' }, { reward });
    expect(episode).toMatchObject({ id: 'episode-0', group: 'group', sample: 0, outcome: { kind: 'done' } });
    expect(episode.segments.map(segment => [segment.source, [...segment.tokens]])).toEqual([
      ['prompt', [...context.renderer.encode('1+1=')]],
      ['policy', [50, BYTE_SPECIAL.end]],
    ]);
    expect(episode.steps).toEqual([{ segment: 1, reward: 0.5, finishReason: 'stop' }]);
    expect([episode.score, episode.metrics]).toEqual([1, { format: 1 }]);
    expect(inputs[0]).toMatchObject({ prompt: '1+1=', text: '2', query: '1+1=2', label: '2', task });
    expect(inputs[0]!.episode).not.toHaveProperty('policy');
  });

  it('renders messages and lets the caller write the prompt', async () => {
    const prompt = (given: Task) => [{ role: 'user', content: `${given.prompt}?` }];
    const { context } = await run({ answers: () => '2' }, { prompt });
    const shown = context.renderer.decode(context.sampler.requests[0]!.tokens, { special: true });
    expect(shown).toBe('<|im_start|>user\n1+1=?<|im_end|>\n<|im_start|>assistant\n');
  });

  it('scores an answer that was cut and says so', async () => {
    const { episode } = await run({ answers: () => '2 or so' }, { maxNewTokens: 1 });
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'length' });
    expect(episode.steps).toEqual([{ segment: 1, reward: 1, finishReason: 'length' }]);
  });

  it('leaves the answer what the window leaves', async () => {
    const { context, episode } = await run({ answers: () => 'long', limits: { maxTokens: 6 } });
    expect(context.sampler.requests[0]!.params).toMatchObject({
      maxTokens: 2,
      stopTokens: context.renderer.stopTokens,
    });
    expect(episode.segments[1]!.tokens).toHaveLength(2);
  });

  it('takes a stop token of the run out of the answer, and where it has none lets the answer go on', async () => {
    const texts: string[] = [];
    const reward = perSample(({ text }) => texts.push(text));
    await run({ answers: () => 'ab;c', params: { stopTokens: [';'.charCodeAt(0)] } }, { reward });
    await run({ answers: () => 'ab;', limits: { maxNewTokens: 3 } }, { reward });
    const answers = () => [97, 98, BYTE_SPECIAL.end, 99];
    const { episode } = await run({ answers, params: { stopTokens: [] }, limits: { maxNewTokens: 4 } }, { reward });
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'length' });
    expect(episode.segments[1]!.tokens).toEqual(Int32Array.from(answers()));
    expect(texts).toEqual(['ab', 'ab;', 'abc']);
  });

  it.each([
    [undefined, 'ab'],
    [true, 'ab</end>'],
  ])('lets rewards read up to a stop string, or with it (%s), and keeps all tokens', async (includeStop, expected) => {
    const texts: string[] = [];
    const reward = perSample(({ text }) => texts.push(text));
    const context = {
      ...testContext({ answers: () => 'ab</end>cd', params: { stopStrings: ['</end>'] } }),
      includeStop,
    };
    const episode = await singleTurn({ reward }).run(task, context);
    expect(texts).toEqual([expected]);
    expect(context.renderer.decode(episode.segments[1]!.tokens)).toBe('ab</end>');
    expect(episode.steps[0]!.finishReason).toBe('stop');
  });

  it('passes images to the policy and keeps them on the prompt', async () => {
    const images = [{ mediaType: 'image/png', data: Uint8Array.of(1, 2) }];
    const { context, episode } = await run({ answers: () => '2' }, {}, { images });
    expect(context.sampler.requests[0]!.images).toEqual(images);
    expect(episode.segments[0]!.images).toBe(images);
  });

  it.each([
    [{ maxTokens: 4 }, {}, /prompt of 4 tokens leaves no room .* data\.max_len \(4\); raise it/],
    [{}, { contextLength: 3 }, /prompt of 4 tokens leaves no room .* context of 3 tokens; .* longer one/],
  ])('fails an over-long prompt, naming both numbers and the remedy', async (limits, sampler, message) => {
    const { context, episode } = await run({ limits, ...sampler });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'overflow', step: 0 });
    expect(episode.outcome).toHaveProperty('message', expect.stringMatching(message));
    expect(episode.segments).toEqual([]);
    expect(context.sampler.requests).toEqual([]);
  });

  it('puts rewards of tokens on the tokens, their sum the reward where none is given', async () => {
    const answers = () => '23';
    const { episode } = await run({ answers }, { reward: () => [{ tokens: [0.5, -0.25, 1] }] });
    expect(episode.steps).toEqual([{ segment: 1, reward: 1.25, tokenRewards: [0.5, -0.25, 1], finishReason: 'stop' }]);
    expect([episode.score, toTrajectories(episode)[0]!.steps[0]!.tokenRewards]).toEqual([1.25, [0.5, -0.25, 1]]);
    const both = await run({ answers }, { reward: () => [{ reward: 2, tokens: [0.5, 0, 0], steps: [1] }] });
    expect(both.episode.steps).toMatchObject([{ reward: 2, tokenRewards: [0.5, 0, 0] }]);
    const step = await run({ answers }, { reward: () => [{ steps: [0.5] }] });
    expect(step.episode.steps).toEqual([{ segment: 1, reward: 0.5, finishReason: 'stop' }]);
  });

  it.each<[string, RewardFunction, RegExp]>([
    [
      'gives too few rewards of tokens',
      () => [{ reward: 1, tokens: [1] }],
      /^reward: tokens: expected 2 rewards, one for each token of the answer, got 1$/,
    ],
    ['gives too many of steps', () => [{ steps: [1, 2] }], /^reward: steps: expected 1 rewards, .* episode, got 2$/],
    ['gives a token NaN', () => [{ tokens: [1, Number.NaN] }], /^reward: tokens\[1\]: expected number, got NaN$/],
    ['gives an object of nothing', () => [{}], /^reward: reward: expected number, got nothing$/],
    ['throws', () => Promise.reject(new Error('no judge')), /^reward: no judge$/],
    ['gives NaN', () => [Number.NaN], /^reward: reward: expected number, got NaN$/],
    ['gives a word', () => ['good' as never], /reward: expected a number or an object .*, got "good"/],
    ['gives too few', () => [], /expected 1 scores, one for each answer, got 0/],
    ['is a function of one answer', (() => 1) as never, /expected an array of 1 scores, got 1; wrap .* perSample/],
    ['gives an infinite score', () => [{ reward: 1, score: Infinity }], /score: expected number, got Infinity/],
  ])('fails the episode when the reward %s', async (_, reward, message) => {
    const { episode } = await run({ answers: () => '2' }, { reward });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'reward', step: 0 });
    expect(episode.outcome).toHaveProperty('message', expect.stringMatching(message));
    expect([episode.segments.length, episode.steps.length]).toEqual([2, 0]);
  });

  it('fails the episode when the reward never answers', async () => {
    vi.useFakeTimers();
    const pending = run({ answers: () => '2' }, { reward: () => new Promise(() => undefined) });
    await vi.advanceTimersByTimeAsync(1000);
    const { episode } = await pending;
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'timeout', step: 0 });
    expect(episode.outcome).toHaveProperty('message', expect.stringContaining('within 1000 ms'));
  });

  it('attributes what the policy does wrong to the provider', async () => {
    const broken = () => {
      throw new Error('connection lost');
    };
    expect((await run({ answers: broken })).episode.outcome).toMatchObject({
      failure: 'provider',
      message: 'policy: connection lost',
    });
    const { episode } = await run({ answers: () => 'x', logprob: () => Number.NaN });
    expect(episode.outcome).toMatchObject({ failure: 'provider' });
    expect(episode.outcome).toHaveProperty('message', expect.stringContaining('log-prob of token 0 is NaN'));
    expect(episode.segments).toHaveLength(1);
  });

  it('does not take an aborted answer for a whole one', async () => {
    const context = testContext({ answers: () => 'abc', gated: true });
    const pending = singleTurn({ reward: exact }).run(task, context);
    await context.sampler.arrived(1);
    context.sampler.advance(0, 2);
    await context.sampler.pause({ mode: 'abort' });
    const episode = await pending;
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'provider' });
    expect([episode.segments[1]!.tokens.length, episode.steps.length]).toEqual([2, 0]);
  });

  it('rejects with the reason of an abort, before and during the episode', async () => {
    const controller = new AbortController();
    const context = testContext({ answers: () => '2', gated: true, signal: controller.signal });
    const pending = singleTurn({ reward: exact }).run(task, context);
    await context.sampler.arrived(1);
    const reason = new Error('the run stops');
    controller.abort(reason);
    await expect(pending).rejects.toBe(reason);
    await expect(singleTurn({ reward: exact }).run(task, context)).rejects.toBe(reason);
    expect(context.sampler.requests).toHaveLength(1);
  });

  it('aborts the signal of the reward when the episode is over', async () => {
    let signal: AbortSignal | undefined;
    const reward = perSample(input => {
      signal = input.signal;
      return signal.aborted ? 1 : 0;
    });
    const { episode } = await run({ answers: () => '2' }, { reward });
    expect([episode.score, signal!.aborted]).toEqual([0, true]);
  });
});
