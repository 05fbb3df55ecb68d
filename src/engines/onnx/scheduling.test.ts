import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { samplerOf as makeSampler, type Request, request } from '../../../tests/support/sampler.ts';
import type { Generation, SamplingParams } from '../contracts.ts';
import { PolicyGraphs } from './policy-graphs.ts';
import type { SamplerOptions } from './sampler.ts';

/** Vocabulary 40, window 64, grouped heads. */
const MODEL = goldenModel('grouped-tied');
const V = 40;

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(open.splice(0).map(each => each.close()));
});

function samplerOf(options: Partial<SamplerOptions> = {}, model = MODEL) {
  const sampler = makeSampler(model, options);
  open.push(sampler.core);
  return sampler;
}

const tokens = (count: number, offset = 0) => Array.from({ length: count }, (_, t) => (3 * t + offset) % V);

/** What ran since: `prefill` with the tokens it computed, padding included, `decode` with its rows. */
function watch(): () => [kind: 'prefill' | 'decode', size: number][] {
  const runs: ['prefill' | 'decode', number][] = [];
  const { prefill, decode } = PolicyGraphs.prototype;
  vi.spyOn(PolicyGraphs.prototype, 'prefill').mockImplementation(function (this: PolicyGraphs, ...args) {
    runs.push(['prefill', args[1].length * args[2].chunk]);
    return prefill.apply(this, args);
  });
  vi.spyOn(PolicyGraphs.prototype, 'decode').mockImplementation(function (this: PolicyGraphs, ...args) {
    runs.push(['decode', args[1].tokens.length]);
    return decode.apply(this, args);
  });
  return () => runs.splice(0);
}

describe('a long prompt', () => {
  it('takes at most the budget of every step, and rows that are ready go on meanwhile', async () => {
    const ran = watch();
    const { core, submit, sampled } = samplerOf({ prefillTokens: 8 });
    const [short] = submit([request(1, [1, 2, 3], { maxTokens: 30 })]);
    await core.step();
    expect(ran()).toEqual([
      ['prefill', 2],
      ['decode', 1],
    ]);
    const [long] = submit([request(2, tokens(30), { maxTokens: 30 })]);
    // 29 tokens are computed before the last one is decoded: 8, 8, 8 and 5.
    for (const computed of [8, 8, 8]) {
      await core.step();
      expect(ran()).toEqual([
        ['prefill', computed],
        ['decode', 1],
      ]);
    }
    expect(sampled).toEqual([short, short, short, short]);
    await core.step();
    expect(ran()).toEqual([
      ['prefill', 5],
      ['decode', 2],
    ]);
    expect(sampled.slice(4)).toEqual([short, long]);
  });

  it('lets those behind it in when what is left of it leaves room for them', async () => {
    const ran = watch();
    const { core, submit } = samplerOf({ prefillTokens: 8 });
    submit([request(1, tokens(15)), request(2, [7, 8, 9])]);
    await core.step();
    expect(ran()).toEqual([['prefill', 8]]);
    // 6 tokens are left and 2 come: both are computed in a run of two rows, of 4 tokens each.
    await core.step();
    expect(ran()).toEqual([
      ['prefill', 8],
      ['decode', 1],
    ]);
    await core.step();
    expect(ran()).toEqual([
      ['prefill', 2],
      ['decode', 2],
    ]);
  });

  it('is given up with its last request', async () => {
    const ran = watch();
    const { core, submit, finished } = samplerOf({ prefillTokens: 8 });
    const ids = submit([request(1, tokens(30)), request(2, tokens(30)), request(3, tokens(30, 1))]);
    await core.step();
    core.abort(ids[0]!);
    await core.step();
    core.abort(ids[1]!);
    expect(ids.map(id => finished.get(id)?.finishReason)).toEqual(['abort', 'abort', undefined]);
    ran();
    while (core.busy) await core.step();
    expect(finished.get(ids[2]!)!.tokens).toHaveLength(10);
    const computed = ran().filter(([kind]) => kind === 'prefill');
    expect(computed.reduce((sum, [, size]) => sum + size, 0)).toBe(29);
  });

  it('is begun again when the weights change on the way', async () => {
    const ran = watch();
    const { core, model, submit, finished } = samplerOf({ prefillTokens: 8 });
    const long = request(1, tokens(20));
    const [id] = submit([long]);
    await core.step();
    await core.step();
    for (const [i, weight] of model.weights.entries()) model.weights[i] = weight * (1 + 0.1 * Math.sin(i));
    core.weightsChanged();
    ran();
    while (core.busy) await core.step();
    expect(ran().flatMap(([kind, size]) => (kind === 'prefill' ? [size] : []))).toEqual([8, 8, 3]);
    const fresh = makeSampler(model, { prefillTokens: 8 });
    open.push(fresh.core);
    expect(finished.get(id!)).toEqual((await fresh.answers([long]))[0]);
  });
});

describe('keys and values of prompts', () => {
  it('are counted: asked for, found again, and evicted', async () => {
    const { core, answers } = samplerOf();
    const prompt = tokens(20);
    const [first] = await answers([request(1, prompt), request(2, prompt)]);
    expect(core.statistics).toEqual({ promptTokens: 40, cachedTokens: 19, evictions: 0 });
    // All of the first turn is there but the last token that was sampled.
    await answers([request(3, [...prompt, ...first!.tokens, 5])]);
    expect(core.statistics).toEqual({ promptTokens: 40 + 31, cachedTokens: 19 + 29, evictions: 0 });
  });

  it('are found by requests that had to wait for a row', async () => {
    const ran = watch();
    const { answers } = samplerOf({ maxRows: 2 });
    await answers([1, 2, 3, 4, 5].map(seed => request(seed, tokens(20))));
    expect(ran().flatMap(([kind, size]) => (kind === 'prefill' ? [size] : []))).toEqual([19]);
  });

  it('are computed again after eviction, and never those of others', async () => {
    const bytes = 4096;
    const roomy = samplerOf({ prefixCacheBytes: 1 << 22, maxRows: 3 });
    const tight = samplerOf({ prefixCacheBytes: bytes, maxRows: 3, prefillTokens: 7 });
    const none = samplerOf({ prefixCacheBytes: 0 });
    const conversations = Array.from({ length: 6 }, (_, i) => tokens(3 + i, i % 3));
    for (let turn = 0; turn < 4; turn++) {
      const requests = conversations.map((tokens, i) => request(10 * turn + i, tokens, { maxTokens: 3 + i }));
      const [a, b, c] = await Promise.all([roomy, tight, none].map(({ answers }) => answers(requests)));
      for (const [i, { tokens }] of c!.entries()) {
        expect([a![i]!.tokens, b![i]!.tokens]).toEqual([tokens, tokens]);
        for (const [t, logprob] of c![i]!.logprobs.entries()) {
          expect(Math.abs(a![i]!.logprobs[t]! - logprob)).toBeLessThan(TOLERANCE);
          expect(Math.abs(b![i]!.logprobs[t]! - logprob)).toBeLessThan(TOLERANCE);
        }
        conversations[i]!.push(...tokens.slice(0, 4), turn);
      }
    }
    expect(tight.core.statistics.evictions).toBeGreaterThan(10);
    expect(roomy.core.statistics.evictions).toBe(0);
    expect(roomy.core.statistics.cachedTokens).toBeGreaterThan(tight.core.statistics.cachedTokens);
  });
});

/** Between a request alone and in company, or with another part of it cached: float32 sums in another order. */
const TOLERANCE = 1e-5;

const params: fc.Arbitrary<Partial<SamplingParams>> = fc.record({
  temperature: fc.constantFrom(0, 0.7, 1),
  topP: fc.constantFrom(1, 0.8),
  topK: fc.constantFrom(0, 5),
  minP: fc.constantFrom(0, 0.05),
  maxTokens: fc.integer({ min: 1, max: 24 }),
  stopTokens: fc.constantFrom([], [2, 3]),
  stopStrings: fc.constantFrom([], ['B'], ['CA', 'D']),
  topLogprobs: fc.constantFrom(0, 3),
});
const prompt = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.nat(3))
  // Few beginnings and few ends, so that prompts are equal, or share a prefix, often.
  .map(([count, end]) => [...tokens(count), ...(end === 0 ? [] : [end])]);
const requests: fc.Arbitrary<Request[]> = fc.array(
  fc.tuple(fc.nat(50), prompt, params).map(([seed, given, cut]) => request(seed, given, cut)),
  { minLength: 1, maxLength: 20 },
);

/** Requests that come in while others are decoded, as many as `arrivals` says before each step. */
async function mixed(
  { core, submit, finished }: ReturnType<typeof makeSampler>,
  all: readonly Request[],
  arrivals: readonly number[],
) {
  const left = [...all];
  const ids: number[] = [];
  for (let step = 0; left.length > 0 || core.busy; step++) {
    ids.push(...submit(left.splice(0, arrivals[step % arrivals.length]!)));
    await core.step();
  }
  return ids.map(id => finished.get(id)!);
}

describe.each(['grouped-tied', 'gemma3-bf16', 'qwen2'])('deterministic: what a request to %s gets', model => {
  it.each([
    { maxRows: 64, prefillTokens: 256 },
    { maxRows: 5, prefillTokens: 9, prefixCacheBytes: 3000 },
    { maxRows: 64, prefillTokens: 256, dtype: 'int8' as const },
  ])('does not depend on the requests beside it in any bit: %o', async options => {
    const directory = goldenModel(model);
    const alone = makeSampler(directory, { ...options, deterministic: true, prefixCacheBytes: 0 });
    const together = makeSampler(directory, { ...options, deterministic: true });
    open.push(alone.core, together.core);
    const vocabulary = alone.model.config.vocabSize;
    const fit = ({ tokens, ...rest }: Request): Request => ({
      ...rest,
      tokens: tokens.map(token => token % vocabulary),
    });
    const arrivals = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(requests, arrivals, async (given, steps) => {
        const all = given.map(fit);
        const expected: Generation[] = [];
        for (const each of all) expected.push(...(await alone.answers([each])));
        expect(await mixed(together, all, steps)).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });
});
