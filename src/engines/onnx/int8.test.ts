import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
import { golden, goldenModel } from '../../../tests/support/goldens.ts';
import { input } from '../../nn/graph.ts';
import { emit } from '../../nn/onnx.ts';
import { quantizedLinear, quantizeWeights } from '../../nn/runtime-ops.ts';
import { DEFAULT_SAMPLING, type Generation, type SamplingParams } from '../contracts.ts';
import { int8Saturates } from './int8-probe.ts';
import { OnnxLearnerCore } from './learner.ts';
import { Model } from './model.ts';
import { PolicyGraphs } from './policy-graphs.ts';
import { OnnxSamplerCore } from './sampler.ts';
import { Session } from './session.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(each => each.close()));
});

const expected = JSON.parse(
  readFileSync(new URL('../../../tests/goldens/int8.json', import.meta.url), 'utf8'),
) as Record<string, number[][]>;

describe.each(Object.keys(expected))('%s in 8 bits', name => {
  /** Log-probabilities after each token from `from` on, the tokens before it computed as a prompt. */
  async function logprobs(from: number): Promise<Float32Array[]> {
    const graphs = new PolicyGraphs(new Model(goldenModel(name)), { threads: 1, dtype: 'int8' });
    open.push(graphs);
    const tokens = Int32Array.from(golden(name).sequences.at(-1)!);
    const cache = graphs.newCache();
    cache.addRow();
    cache.reserveLength(tokens.length);
    if (from > 0) await graphs.prefill(cache, [tokens.subarray(0, from)], { first: 0, chunk: from });
    const rows: Float32Array[] = [];
    for (const token of tokens.subarray(from)) {
      const step = { tokens: [token], temperatures: [1], uniforms: [0.5], distributions: true };
      const result = await graphs.decode(cache, step);
      expect(result.logprobs[0]).toBeCloseTo(result.distribution(0)[Number(result.tokens[0])]!, 5);
      rows.push(result.distribution(0));
    }
    return rows;
  }

  // The sums are exact and the rest is float32, but where a value lies within its rounding of the bound between two
  // levels, one of a few hundred levels of an input moves by one.
  const ONE_LEVEL = 0.02;

  it.each([0, 7])("has PyTorch's log-probabilities, after a prompt of %d tokens", async from => {
    for (const [i, row] of (await logprobs(from)).entries()) {
      const reference = expected[name]![from + i]!;
      const error = Math.max(...row.map((value, token) => Math.abs(value - reference[token]!)));
      expect(error).toBeLessThan(ONE_LEVEL);
    }
  });
});

it('multiplies exactly, by the way that is exact on this processor', async () => {
  const exactInt8 = await int8Saturates();
  const session = await Session.create(
    emit({ y: quantizedLinear(input('x', ['N', 70]), quantizeWeights(input('w', [33, 70]))) }),
    { threads: 1, exactInt8 },
  );
  open.push({ close: () => session.release() });
  // The largest values: sums of pairs leave 16 bits.
  const { y } = await session.run(
    { x: new Float32Array(5 * 70).fill(1), w: new Float32Array(33 * 70).fill(-1) },
    { N: 5 },
  );
  for (const value of y as Float32Array) expect(value).toBeCloseTo(-70, 4);
});

const MODEL = goldenModel('grouped-tied');

function sampled(
  model: Model,
  requests: readonly { seed: number; tokens: readonly number[] }[],
  params: Partial<SamplingParams>,
) {
  const finished = new Map<number, Generation>();
  const events = {
    token: () => undefined,
    finished: (id: number, generation: Generation) => void finished.set(id, generation),
  };
  const options = { ...hostOptions(MODEL).sampler, prefixCacheBytes: 0, dtype: 'int8' as const };
  const core = new OnnxSamplerCore(model, options, events);
  open.push(core);
  return async (): Promise<Generation[]> => {
    core.submit(
      requests.map(({ seed, tokens }, id) => ({
        id,
        seed,
        tokens: Int32Array.from(tokens),
        params: { ...DEFAULT_SAMPLING, maxTokens: 12, ...params },
        streaming: false,
      })),
    );
    while (core.busy) await core.step();
    return requests.map((_, id) => finished.get(id)!);
  };
}

const REQUESTS = Array.from({ length: 24 }, (_, i) => ({ seed: i, tokens: [1 + (i % 5), 7, i % 40] }));

it('is near the float32 policy, and far from it only by the rounding', async () => {
  const model = new Model(MODEL);
  const generations = await sampled(model, REQUESTS, {})();
  const learner = new OnnxLearnerCore(model, hostOptions(MODEL).learner);
  open.push(learner);
  const sequences = generations.map(({ tokens }, i) => ({
    tokens: Int32Array.from([...REQUESTS[i]!.tokens, ...tokens]),
    predict: Uint8Array.from([...REQUESTS[i]!.tokens.map(() => 0), ...[...tokens].map(() => 1)]),
  }));
  const { logprobs } = await learner.forward({ temperature: 1, sequences });
  const differences = generations.flatMap((generation, i) =>
    [...generation.logprobs].map((value, t) => value - logprobs[i]![t]!),
  );
  const mean = differences.reduce((sum, value) => sum + Math.abs(value), 0) / differences.length;
  // Of the float32 sampler it is below 1e-5. A tiny random model is the hard case: measured 0.034.
  expect(mean).toBeGreaterThan(1e-4);
  expect(mean).toBeLessThan(0.1);
});

it('gives a request the same alone as in company', async () => {
  const together = await sampled(new Model(MODEL), REQUESTS, {})();
  for (const i of [0, 11, 23]) {
    const [alone] = await sampled(new Model(MODEL), [REQUESTS[i]!], {})();
    expect(alone!.tokens).toEqual(together[i]!.tokens);
  }
});

it.each([undefined, { rank: 3, alpha: 8, targetModules: 'all-linear' as const, seed: 5 }])(
  'samples from new weights after they change (lora %j)',
  async lora => {
    const model = new Model(MODEL, undefined, undefined, lora);
    const run = sampled(model, REQUESTS, {});
    const before = await run();
    expect(await run()).toEqual(before);
    for (let i = 0; i < model.weights.length; i++) model.weights[i]! += 0.3 * Math.sin(i);
    (open.at(-1) as OnnxSamplerCore).weightsChanged();
    const after = await run();
    expect(after.map(({ tokens }) => [...tokens])).not.toEqual(before.map(({ tokens }) => [...tokens]));
    // As a sampler does that never knew the old ones.
    expect(await sampled(model, REQUESTS, {})()).toEqual(after);
  },
);
