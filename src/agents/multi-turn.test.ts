import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Action, Environment, StepResult } from '../envs/contracts.ts';
import type { Task } from '../episode/task.ts';
import { toTrajectories } from '../episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../episode/validate.ts';
import { BYTE_SPECIAL, byteRenderer } from '../testing/byte-tokenizer.ts';
import { type TestContextOptions, testContext } from '../testing/executor-context.ts';
import type { Renderer } from '../text/renderer.ts';
import { type MultiTurnOptions, multiTurn } from './multi-turn.ts';

const task: Task = { id: 't', prompt: 'go', label: 'L', metadata: {} };
const answers = (...lines: string[]) => ({ answers: (_: unknown, index: number) => lines[index] ?? '?' });

afterEach(() => {
  vi.useRealTimers();
});

/** An environment that gives prepared results; what it was asked is in `actions`. */
function scripted(results: readonly Partial<StepResult>[], rest: Partial<Environment> = {}) {
  const actions: Action[] = [];
  const environment: Environment = {
    reset: () => ({ observation: 'Q' }),
    step(action) {
      actions.push(action);
      return { reward: 0, done: false, feedback: '.', ...results[actions.length - 1] };
    },
    ...rest,
  };
  return { environment, actions };
}

async function run(environment: Environment, options: TestContextOptions, agent: MultiTurnOptions = {}) {
  const context = testContext(options);
  const episode = await multiTurn(() => environment, agent).run(task, context);
  validateEpisode(episode, { vocabularySize: context.renderer.vocabularySize });
  for (const trajectory of toTrajectories(episode)) validateTrajectory(trajectory);
  const seen = context.sampler.requests.map(({ tokens }) => context.renderer.decode(tokens, { special: true }));
  return { context, episode, seen };
}

describe('multiTurn', () => {
  it('appends text as it is, and keeps rewards, states and metrics of every step', async () => {
    const { environment, actions } = scripted(
      [
        { reward: 0.25, feedback: '<', stateKey: 's1', metrics: { calls: 1 }, score: 0.1 },
        { reward: -1, feedback: '>', metrics: { calls: 2, errors: 1 } },
        { reward: 1, done: true },
      ],
      { reset: () => ({ observation: 'Q', stateKey: 's0' }) },
    );
    const { episode, seen } = await run(environment, answers('a', 'b', 'c'));
    expect(seen).toEqual(['Q', 'Qa<|im_end|><', 'Qa<|im_end|><b<|im_end|>>']);
    expect(episode.segments.map(({ source, parent }) => [source, parent])).toEqual([
      ['prompt', -1],
      ['policy', 0],
      ['environment', 1],
      ['policy', 2],
      ['environment', 3],
      ['policy', 4],
    ]);
    expect(episode.steps).toEqual([
      { segment: 1, reward: 0.25, finishReason: 'stop', stateKey: 's0', metrics: { calls: 1 } },
      { segment: 3, reward: -1, finishReason: 'stop', stateKey: 's1', metrics: { calls: 2, errors: 1 } },
      { segment: 5, reward: 1, finishReason: 'stop' },
    ]);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.score).toBe(0.1);
    expect(episode.metrics).toEqual({ turns: 3, calls: 3, errors: 1 });
    expect(actions.map(({ actionText, observationText, turn }) => [actionText, observationText, turn])).toEqual([
      ['a', 'Q', 0],
      ['b', 'Qa<|im_end|><', 1],
      ['c', 'Qa<|im_end|><b<|im_end|>>', 2],
    ]);
    expect(actions[0]).toMatchObject({ label: 'L', task, finishReason: 'stop' });
    expect([...actions[0]!.actionTokens]).toEqual([97, BYTE_SPECIAL.end]);
    expect(toTrajectories(episode)).toHaveLength(1);
  });

  it('sums rewards when the environment gives no score', async () => {
    const { environment } = scripted([{ reward: 0.5 }, { reward: 2, done: true }]);
    expect((await run(environment, answers('a', 'b'))).episode.score).toBe(2.5);
  });

  it('lets the chat template render messages', async () => {
    const { environment } = scripted([{ feedback: [{ role: 'tool', content: '3' }] }, { done: true }], {
      reset: () => ({ observation: [{ role: 'user', content: 'Q' }] }),
    });
    const { episode, seen } = await run(environment, answers('call', '3'));
    const first = '<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n';
    expect(seen).toEqual([first, `${first}call<|im_end|>\n<|im_start|>tool\n3<|im_end|>\n<|im_start|>assistant\n`]);
    expect(episode.segments.map(({ source }) => source)).toEqual(['prompt', 'policy', 'environment', 'policy']);
  });

  it('opens a branch when the template rewrites the past, with every image shown so far', async () => {
    const image = (byte: number) => ({ mediaType: 'image/png', data: Uint8Array.of(byte) });
    const base = byteRenderer();
    const renderer: Renderer = {
      ...base,
      extend: () => ({ kind: 'branch', tokens: base.encode('rewritten'), reason: 'test' }),
    };
    const { environment } = scripted(
      [
        { feedback: [{ role: 'user', content: 'more' }], images: [image(2)] },
        { done: true, reward: 1 },
      ],
      { reset: () => ({ observation: [{ role: 'user', content: 'Q' }], images: [image(1)] }) },
    );
    const { context, episode, seen } = await run(environment, { renderer, ...answers('a', 'b') });
    expect(seen[1]).toBe('rewritten');
    expect(episode.segments.map(({ source, parent }) => [source, parent])).toEqual([
      ['prompt', -1],
      ['policy', 0],
      ['prompt', -1],
      ['policy', 2],
    ]);
    expect(context.sampler.requests[1]!.images).toEqual([image(1), image(2)]);
    expect(toTrajectories(episode).map(({ steps }) => steps.map(({ reward }) => reward))).toEqual([[0], [1]]);
  });

  it('refuses messages after text, which no template can render', async () => {
    const { environment } = scripted([{ feedback: [{ role: 'user', content: 'more' }] }]);
    const { episode } = await run(environment, answers('a'));
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment', step: 1 });
    expect(episode.outcome).toHaveProperty('message', expect.stringContaining('messages cannot follow text'));
  });

  it('ends truncated when the turns are used up', async () => {
    const { environment, actions } = scripted([]);
    const { episode } = await run(environment, { limits: { maxTurns: 2 } });
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
    expect(actions).toHaveLength(2);
    expect((await run(scripted([]).environment, {}, { maxTurns: 3 })).episode.steps).toHaveLength(3);
  });

  it('gives a cut answer to the environment', async () => {
    const { environment, actions } = scripted([{ feedback: '+' }, { done: true, reward: 1 }]);
    const { episode, seen } = await run(environment, answers('abcdef', 'g'), { maxNewTokens: 3 });
    expect(actions.map(({ actionText, finishReason }) => [actionText, finishReason])).toEqual([
      ['abc', 'length'],
      ['g', 'stop'],
    ]);
    expect(seen[1]).toBe('Qabc+');
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps.map(({ finishReason }) => finishReason)).toEqual(['length', 'stop']);
  });

  it.each([
    ['fits with room for one token', 7, 2],
    ['leaves no room', 6, 1],
  ])('feeds only what fits: feedback that %s', async (_, maxTokens, turns) => {
    const { environment } = scripted([{ feedback: '...' }, { done: true }]);
    const { episode } = await run(environment, { ...answers('a', 'b'), limits: { maxTokens } });
    expect(episode.metrics.turns).toBe(turns);
    if (turns === 1) {
      expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'tokens' });
      expect(episode.segments).toHaveLength(2);
    } else {
      expect(episode.outcome).toEqual({ kind: 'done' });
      expect(episode.segments[3]!.tokens).toHaveLength(1);
    }
  });

  it('applies sampling overrides to the turns that follow', async () => {
    const { environment } = scripted([
      { samplingParams: { temperature: 0.5, maxTokens: 2 } },
      { samplingParams: { topP: 0.9, temperature: undefined as never } },
      { done: true },
    ]);
    const { context } = await run(environment, answers('a', 'b', 'c'));
    expect(context.sampler.requests.map(({ params }) => [params.temperature, params.topP, params.maxTokens])).toEqual([
      [1, 1, 64],
      [0.5, 1, 2],
      [0.5, 0.9, 2],
    ]);
  });

  it.each<[string, Partial<Environment>, number, RegExp]>([
    ['throws in step', { step: () => Promise.reject(new Error('db down')) }, 0, /^environment\.step: db down$/],
    ['throws in reset', { reset: () => fail('no level') }, 0, /^environment\.reset: no level$/],
    ['gives NaN', { step: () => ({ reward: Number.NaN, done: true }) }, 0, /reward: expected number, got NaN/],
    ['gives no reward', { step: () => ({ done: true }) as never }, 0, /reward: expected number, got nothing/],
    ['gives a word', { step: () => 'well done' as never }, 0, /expected object, got "well done"/],
    ['gives nothing', { step: () => undefined as never }, 0, /expected object, got nothing/],
    ['forgets feedback', { step: () => ({ reward: 0, done: false }) }, 0, /feedback: .* got nothing/],
    ['misspells a parameter', { step: () => ({ ...more, samplingParams: { top_p: 1 } }) as never }, 0, /top_p/],
    ['asks for no tokens', { step: () => ({ ...more, samplingParams: { maxTokens: 0 } }) }, 0, /maxTokens: .*got 0/],
    ['has no observation', { reset: () => ({}) as never }, 0, /observation: expected text or .* got nothing/],
    ['has an empty observation', { reset: () => ({ observation: '' }) }, 0, /prompt: it has no tokens/],
    ['has no step', { step: undefined as never }, 0, /must give an object with reset and step/],
  ])('fails the episode of an environment that %s', async (_, broken, step, message) => {
    const close = vi.fn();
    const { environment } = scripted([], { close, ...broken });
    const { episode } = await run(environment, answers('a'));
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment', step });
    expect(episode.outcome).toHaveProperty('message', expect.stringMatching(message));
    expect(close).toHaveBeenCalledTimes(environment.step === undefined ? 0 : 1);
  });

  it('keeps what was recorded before a failure', async () => {
    const { environment } = scripted([{ reward: 1, metrics: { calls: 1 } }, { reward: Number.POSITIVE_INFINITY }]);
    const { episode } = await run(environment, answers('a', 'b'));
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment', step: 1 });
    expect(episode.steps).toHaveLength(1);
    expect(episode.segments).toHaveLength(4);
    expect(episode.metrics).toEqual({ turns: 1, calls: 1 });
  });

  it('fails an over-long observation', async () => {
    const { environment } = scripted([], { reset: () => ({ observation: 'x'.repeat(9) }) });
    const { episode } = await run(environment, { limits: { maxTokens: 9 } });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'overflow', step: 0 });
  });

  it.each(['reset', 'step'] as const)('fails the episode when %s never answers, and closes', async method => {
    vi.useFakeTimers();
    const close = vi.fn();
    const { environment } = scripted([], { close, [method]: () => new Promise(() => undefined) });
    const pending = run(environment, answers('a'));
    await vi.advanceTimersByTimeAsync(1000);
    const { episode } = await pending;
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'timeout', step: 0 });
    expect(episode.outcome).toHaveProperty('message', expect.stringContaining(`environment.${method}: no answer`));
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('closes after the signal was aborted, when the episode is done', async () => {
    let signal: AbortSignal | undefined;
    const close = vi.fn(() => expect(signal?.aborted).toBe(true));
    const { environment } = scripted([{ done: true }], {
      close,
      reset: (_, context) => {
        signal = context.signal;
        expect([signal.aborted, context.seed]).toEqual([false, 77]);
        return { observation: 'Q' };
      },
    });
    const { episode } = await run(environment, { ...answers('a'), environmentSeed: 77 });
    expect(close).toHaveBeenCalledTimes(1);
    expect(episode.metrics).toEqual({ turns: 1 });
  });

  it.each<[string, () => unknown, RegExp]>([
    ['throws', () => fail('still busy'), /still busy/],
    ['never ends', () => new Promise(() => undefined), /no answer within 1000 ms/],
  ])('counts and logs a close that %s, and keeps the episode', async (_, close, message) => {
    vi.useFakeTimers();
    const { environment } = scripted([{ done: true, reward: 1 }], { close: close as () => void });
    const pending = run(environment, answers('a'));
    await vi.advanceTimersByTimeAsync(1000);
    const { context, episode } = await pending;
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.metrics).toEqual({ turns: 1, close_failed: 1 });
    expect(context.logged).toEqual([expect.stringMatching(message)]);
  });

  it.each(['reset', 'step'] as const)('rejects with the reason of an abort during %s, and closes first', async at => {
    const controller = new AbortController();
    const reason = new Error('the run stops');
    const close = vi.fn();
    const stuck = () => {
      controller.abort(reason);
      return new Promise<never>(() => undefined);
    };
    const { environment } = scripted([], { close, [at]: stuck });
    const context = testContext({ ...answers('a'), signal: controller.signal });
    await expect(multiTurn(() => environment).run(task, context)).rejects.toBe(reason);
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('closes an environment that is ready only after the episode has ended', async () => {
    vi.useFakeTimers();
    const close = vi.fn();
    let ready: (environment: Environment) => void = () => undefined;
    const context = testContext();
    const factory = () => new Promise<Environment>(resolve => (ready = resolve));
    const pending = multiTurn(factory).run(task, context);
    await vi.advanceTimersByTimeAsync(1000);
    expect((await pending).outcome).toMatchObject({ failure: 'timeout', step: 0 });
    expect(close).not.toHaveBeenCalled();
    ready(scripted([], { close }).environment);
    await vi.advanceTimersByTimeAsync(0);
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('makes one environment for each episode', async () => {
    const made = vi.fn(() => scripted([{ done: true }]).environment);
    const agent = multiTurn(made);
    await Promise.all([0, 1, 2].map(sample => agent.run(task, testContext({ sample }))));
    expect(made).toHaveBeenCalledTimes(3);
  });
});

const more = { reward: 0, done: false, feedback: '.' };

function fail(message: string): never {
  throw new Error(message);
}
