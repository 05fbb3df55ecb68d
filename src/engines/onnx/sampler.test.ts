import { afterEach, describe, expect, it, vi } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { samplerOf as makeSampler, type Request, request } from '../../../tests/support/sampler.ts';
import { DEFAULT_SAMPLING, type Generation, type LearnerSequence, type SamplingParams } from '../contracts.ts';
import { OnnxLearnerCore } from './learner.ts';
import type { Model } from './model.ts';
import type { SamplerOptions } from './sampler.ts';
import { Session } from './session.ts';
import { draw, truncate } from './truncate.ts';

/** Vocabulary 40, window 64, grouped heads. */
const MODEL = goldenModel('grouped-tied');
const V = 40;
/** Between sampler and learner, design 7; measured here: below 1e-5. */
const ON_POLICY = 1e-4;
/** Between two ways to the same cache: float32 sums in another order. */
const RECOMPUTED = 1e-5;

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(open.splice(0).map(each => each.close()));
});

/** A sampler that is closed with the test. */
function samplerOf(options: Partial<SamplerOptions> = {}, model: Model | string = MODEL) {
  const sampler = makeSampler(model, options);
  open.push(sampler.core);
  return sampler;
}

function learnerOf(model: Model): OnnxLearnerCore {
  const learner = new OnnxLearnerCore(model, hostOptions(MODEL).learner);
  open.push(learner);
  return learner;
}

interface Episode {
  readonly tokens: number[];
  readonly predict: number[];
  readonly logprobs: number[];
}

/** 32 prompts, 8 samples each, two turns with what an environment says between them. */
async function rollout(answers: (requests: readonly Request[]) => Promise<Generation[]>): Promise<Episode[]> {
  const episodes: Episode[] = Array.from({ length: 256 }, (_, i) => {
    const task = Math.floor(i / 8);
    const prompt = Array.from({ length: 1 + (task % 11) }, (_, t) => (5 * t + (t > 2 ? task : 0)) % V);
    return { tokens: prompt, predict: prompt.map(() => 0), logprobs: [] };
  });
  for (let turn = 0; turn < 2; turn++) {
    const generations = await answers(
      episodes.map(({ tokens }, i) =>
        request(1000 * turn + i, tokens, { maxTokens: 3 + ((7 * i) % 15), stopTokens: [2, 3] }),
      ),
    );
    for (const [i, { tokens, logprobs }] of generations.entries()) {
      const said = turn === 0 ? [i % V, 7, 1] : [];
      episodes[i]!.tokens.push(...tokens, ...said);
      episodes[i]!.predict.push(...tokens.map(() => 1), ...said.map(() => 0));
      episodes[i]!.logprobs.push(...logprobs);
    }
  }
  return episodes;
}

describe('the log-probabilities of 256 episodes of two turns', () => {
  const alone = rollout(samplerOf({ maxRows: 1, prefixCacheBytes: 0 }).answers);

  it.each([
    { maxRows: 1, prefixCacheBytes: 1 << 20 },
    { maxRows: 7, prefixCacheBytes: 0 },
    { maxRows: 7, prefixCacheBytes: 100_000 },
    { maxRows: 64, prefixCacheBytes: 1 << 22 },
    { maxRows: 256, prefixCacheBytes: 0 },
    { maxRows: 256, prefixCacheBytes: 1 << 22 },
    { maxRows: 64, prefixCacheBytes: 1 << 22, prefillTokens: 5 },
  ])('are those of the learner, and do not depend on the company: %o', async options => {
    const { model, answers } = samplerOf(options);
    const episodes = await rollout(answers);
    const sequences = episodes.map(
      ({ tokens, predict }): LearnerSequence => ({
        tokens: Int32Array.from(tokens),
        predict: Uint8Array.from(predict),
      }),
    );
    const { logprobs } = await learnerOf(model).forward({ temperature: 1, sequences });
    let worst = 0;
    for (const [i, episode] of episodes.entries()) {
      expect(logprobs[i]).toHaveLength(episode.logprobs.length);
      for (const [t, sampled] of episode.logprobs.entries()) {
        worst = Math.max(worst, Math.abs(sampled - logprobs[i]![t]!));
      }
    }
    expect(worst).toBeLessThan(ON_POLICY);

    // The same seeds draw the same tokens, but where a draw lies within rounding of the bound between two tokens.
    const same = (await alone).filter(({ tokens }, i) => String(tokens) === String(episodes[i]!.tokens));
    expect(same.length).toBeGreaterThanOrEqual(254);
  });
});

/** Number of prompt tokens that the prefill graph computed, padding included. */
function watchPrefill(): () => number {
  const runs = vi.spyOn(Session.prototype, 'run');
  return () => runs.mock.calls.reduce((sum, [, symbols = {}]) => sum + (symbols.C ?? 0) * (symbols.B ?? 0), 0);
}

describe('prompts', () => {
  const prompt = Array.from({ length: 20 }, (_, t) => (3 * t) % V);

  it('are computed once for all samples', async () => {
    const prefilled = watchPrefill();
    const { answers } = samplerOf();
    const together = await answers(Array.from({ length: 8 }, (_, seed) => request(seed, prompt)));
    expect(prefilled()).toBe(prompt.length - 1);
    const separate = samplerOf({ maxRows: 1, prefixCacheBytes: 0 });
    for (const [seed, generation] of together.entries()) {
      const [own] = await separate.answers([request(seed, prompt)]);
      expect(own!.tokens).toEqual(generation.tokens);
      expectClose(own!.logprobs, generation.logprobs);
    }
  });

  it('that continue an answer are computed from where it ended, as if from the start', async () => {
    const results: Generation[][] = [];
    for (const prefixCacheBytes of [0, 1 << 20]) {
      const { answers } = samplerOf({ prefixCacheBytes });
      const [first] = await answers([request(1, prompt)]);
      const continued = [...prompt, ...first!.tokens, 4, 5];
      const prefilled = watchPrefill();
      results.push(await answers([request(2, continued), request(3, [...continued, 6])]));
      // Of the earlier turn all is cached but the last token that was sampled; two prompts share one padded run.
      expect(prefilled()).toBe(prefixCacheBytes === 0 ? 2 * continued.length : 2 * 3);
      vi.restoreAllMocks();
    }
    for (const [i, recomputed] of results[0]!.entries()) {
      expect(results[1]![i]!.tokens).toEqual(recomputed.tokens);
      expectClose(results[1]![i]!.logprobs, recomputed.logprobs);
    }
  });

  it('longer than the budget are computed in pieces', async () => {
    const requests = [request(1, prompt), request(2, prompt.slice(0, 9)), request(3, [1])];
    const whole = await samplerOf().answers(requests);
    for (const prefillTokens of [1, 4, 13]) {
      const pieces = await samplerOf({ prefillTokens }).answers(requests);
      for (const [i, { tokens, logprobs }] of pieces.entries()) {
        expect(tokens).toEqual(whole[i]!.tokens);
        expectClose(logprobs, whole[i]!.logprobs);
      }
    }
  });
});

function expectClose(actual: Float32Array, expected: Float32Array): void {
  for (const [t, value] of expected.entries()) expect(Math.abs(actual[t]! - value)).toBeLessThan(RECOMPUTED);
}

describe('a change of weights on the way', () => {
  it('leaves no keys and values behind that mix both', async () => {
    const { core, model, submit, answers, finished } = samplerOf();
    const tokens = Array.from({ length: 12 }, (_, t) => t);
    const [id] = submit([request(1, tokens, { maxTokens: 20 })]);
    for (let step = 0; step < 5; step++) await core.step();
    for (const [i, weight] of model.weights.entries()) model.weights[i] = weight * (1 + 0.1 * Math.sin(i));
    core.weightsChanged();
    while (core.busy) await core.step();
    const continued = request(2, [...tokens, ...finished.get(id!)!.tokens, 9]);
    const [reused] = await answers([continued]);
    const fresh = samplerOf({ prefixCacheBytes: 0 }, model);
    const [recomputed] = await fresh.answers([continued]);
    expect(reused!.tokens).toEqual(recomputed!.tokens);
    expectClose(reused!.logprobs, recomputed!.logprobs);
  });
});

describe('sampled tokens', () => {
  const DRAWS = 4000;
  const prompt = [3, 1, 4, 1, 5];

  /** p-value below 0.001 fails; cells that expect fewer than 5 are pooled. */
  function expectDistribution(tokens: readonly number[], probabilities: readonly number[]): void {
    const counts = new Float64Array(V);
    for (const token of tokens) counts[token]! += 1;
    const cells = [...probabilities.keys()].map(id => ({
      expected: probabilities[id]! * tokens.length,
      seen: counts[id]!,
    }));
    const rare = cells.filter(({ expected }) => expected < 5);
    const total = (key: 'expected' | 'seen') => rare.reduce((sum, cell) => sum + cell[key], 0);
    const pooled = { expected: total('expected'), seen: total('seen') };
    const all = [...cells.filter(({ expected }) => expected >= 5), ...(pooled.expected > 0 ? [pooled] : [])];
    if (pooled.expected === 0) expect(pooled.seen).toBe(0);
    const degrees = all.length - 1;
    expect(degrees).toBeGreaterThanOrEqual(1);
    const statistic = all.reduce((sum, { expected, seen }) => sum + (seen - expected) ** 2 / expected, 0);
    // Wilson and Hilferty's approximation of the 0.999 quantile.
    const quantile = degrees * (1 - 2 / (9 * degrees) + 3.09 * Math.sqrt(2 / (9 * degrees))) ** 3;
    expect(statistic).toBeLessThan(quantile);
  }

  async function drawn(params: Partial<SamplingParams>) {
    const { model, answers } = samplerOf({ maxRows: 256 });
    const requests = Array.from({ length: DRAWS }, (_, seed) => request(seed, prompt, { maxTokens: 1, ...params }));
    const tokens = (await answers(requests)).map(generation => generation.tokens[0]!);
    const sequences = Array.from({ length: V }, (_, token) => ({
      tokens: Int32Array.of(...prompt, token),
      predict: Uint8Array.of(...prompt.map(() => 0), 1),
    }));
    const temperature = params.temperature ?? 1;
    const { logprobs } = await learnerOf(model).forward({ temperature, sequences });
    return { tokens, logp: Float32Array.from(logprobs, ([value]) => value!) };
  }

  it.each([0.7, 1, 1.5])('are as frequent as the softmax says at temperature %d', async temperature => {
    const { tokens, logp } = await drawn({ temperature });
    expectDistribution(tokens, [...logp].map(Math.exp));
  });

  it.each<Partial<SamplingParams>>([
    { topK: 6 },
    { topP: 0.8 },
    { minP: 0.15, temperature: 1.5 },
    { topK: 12, topP: 0.7, minP: 0.02, temperature: 1.5 },
  ])('are as frequent as the cut distribution says: %o', async params => {
    const { tokens, logp } = await drawn(params);
    // Its own test holds truncate to the definition; here it tells the cut distribution by its log-probabilities.
    const cut = { ...DEFAULT_SAMPLING, ...params };
    const probabilities = new Array<number>(V).fill(0);
    for (let place = 0; place < 20_000; place++) {
      const { token, logprob } = draw(logp, truncate(logp, cut), place / 20_000);
      probabilities[token] = Math.exp(logprob);
    }
    expect(probabilities.filter(p => p > 0).length).toBeLessThan(V);
    expect(probabilities.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 3);
    expectDistribution(tokens, probabilities);
  });
});

describe('the core', () => {
  it('does not sleep while it has requests', () => {
    const { core, submit } = samplerOf();
    submit([request(1, [1])]);
    expect(() => core.sleep()).toThrow(/cannot sleep while requests are in flight/);
    core.abortAll();
    core.sleep();
  });

  it('tells whom it forgets, and works on', async () => {
    const { core, submit, answers } = samplerOf({ maxRows: 2 });
    const ids = submit([1, 2, 3, 4].map(seed => request(seed, [1, 2])));
    await core.step();
    expect(core.reset().sort()).toEqual(ids);
    expect(core.busy).toBe(false);
    const [answer] = await answers([request(1, [1, 2])]);
    expect(answer!.tokens).toHaveLength(10);
  });
});
