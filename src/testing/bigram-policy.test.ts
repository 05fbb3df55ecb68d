import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Loss } from '../algorithms/ops.ts';
import { DEFAULT_SAMPLING, type LossBatch } from '../engines/contracts.ts';
import { bigramPolicy } from './bigram-policy.ts';

/** −Σ (advantages · log π + 0.1 · entropy) */
const reinforce: Loss = {
  key: 'reinforce',
  inputs: ['advantages'],
  entropy: true,
  build(ops, { logprobs, entropy, inputs }) {
    const gain = ops.add(ops.mul(inputs.advantages!, logprobs), ops.mul(ops.constant(0.1), entropy!));
    const loss = ops.neg(ops.sum(gain));
    return { loss, metrics: { entropy: ops.sum(entropy!) } };
  },
};

const V = 4;
const LOGITS = Float64Array.from({ length: V * V }, (_, i) => Math.sin(3 * i));
const params = { ...DEFAULT_SAMPLING, maxTokens: 8 };
const request = (seed: number, extra: Partial<typeof params> = {}) => ({
  tokens: Int32Array.of(1),
  params: { ...params, ...extra },
  seed,
  key: `${seed}`,
});

const batch: LossBatch = {
  temperature: 0.7,
  sequences: [
    { tokens: Int32Array.of(0, 1, 2), predict: Uint8Array.of(0, 0, 1) },
    { tokens: Int32Array.of(3, 3, 1, 0), predict: Uint8Array.of(0, 1, 1, 0) },
  ],
  inputs: { advantages: [Float32Array.of(1.5), Float32Array.of(-0.5, 2)] },
};

describe('bigramPolicy', () => {
  it('has exact gradients', async () => {
    const lossAt = (logits: Float64Array) =>
      bigramPolicy({ vocabularySize: V, logits })
        .learner.forwardBackward(batch, reinforce)
        .then(result => result.loss!);
    const policy = bigramPolicy({ vocabularySize: V, logits: LOGITS });
    await policy.learner.forwardBackward(batch, reinforce);
    // A step of lr 1 moves the logits by the gradient; the temperature-1 probabilities show it up to a constant a row.
    await policy.learner.optimizerStep({ lr: 1 });
    const h = 1e-5;
    for (let row = 0; row < V; row++) {
      const moved = policy.probabilities(row).map(Math.log);
      const before = bigramPolicy({ vocabularySize: V, logits: LOGITS }).probabilities(row).map(Math.log);
      for (let j = 1; j < V; j++) {
        const slope = async (column: number) => {
          const [up, down] = [LOGITS.slice(), LOGITS.slice()];
          up[row * V + column]! += h;
          down[row * V + column]! -= h;
          return ((await lossAt(up)) - (await lossAt(down))) / (2 * h);
        };
        const expected = (await slope(0)) - (await slope(j));
        // Central differences of step 1e-5 in float64 are good to about 1e-10; 1e-8 leaves room for their rounding.
        expect(moved[j]! - moved[0]! - (before[j]! - before[0]!)).toBeCloseTo(expected, 8);
      }
    }
  });

  it('accumulates over calls what one call gives', async () => {
    const whole = bigramPolicy({ vocabularySize: V, logits: LOGITS });
    const split = bigramPolicy({ vocabularySize: V, logits: LOGITS });
    const total = await whole.learner.forwardBackward(batch, reinforce);
    let loss = 0;
    for (const i of [0, 1]) {
      const part = {
        ...batch,
        sequences: [batch.sequences[i]!],
        inputs: { advantages: [batch.inputs.advantages![i]!] },
      };
      loss += (await split.learner.forwardBackward(part, reinforce)).loss!;
    }
    expect(loss).toBeCloseTo(total.loss!, 12);
    const norms = [await whole.learner.optimizerStep({ lr: 0.1 }), await split.learner.optimizerStep({ lr: 0.1 })];
    expect(norms[1]!.gradNorm).toBeCloseTo(norms[0]!.gradNorm, 12);
    for (let row = 0; row < V; row++) expect(split.probabilities(row)).toEqual(whole.probabilities(row));
  });

  it('samples from its distribution, with the log-probabilities that the learner computes', async () => {
    const { sampler, learner, probabilities } = bigramPolicy({ vocabularySize: V, logits: LOGITS });
    const counts = new Float64Array(V);
    for (let seed = 0; seed < 2000; seed++) {
      const { tokens } = await sampler.generate(request(seed, { maxTokens: 1 }));
      counts[tokens[0]!]! += 1;
    }
    const chiSquare = probabilities(1).reduce((sum, p, i) => sum + (counts[i]! - 2000 * p) ** 2 / (2000 * p), 0);
    // 0.999 quantile of chi-square with 3 degrees of freedom; the seeds are fixed.
    expect(chiSquare).toBeLessThan(16.27);

    const { tokens, logprobs } = await sampler.generate(request(7, { temperature: 0.7 }));
    const sequence = { tokens: Int32Array.of(1, ...tokens), predict: Uint8Array.of(0, ...tokens.map(() => 1)) };
    const forward = await learner.forward({ temperature: 0.7, sequences: [sequence] });
    expect(forward.logprobs[0]).toEqual(logprobs);
  });

  it('repeats itself with the same seed, and takes the likeliest token at temperature 0', async () => {
    const { sampler, probabilities } = bigramPolicy({ vocabularySize: V, logits: LOGITS });
    expect(await sampler.generate(request(5))).toEqual(await sampler.generate(request(5)));
    const greedy = await sampler.generate(request(5, { temperature: 0, maxTokens: 1 }));
    const likeliest = probabilities(1).indexOf(Math.max(...probabilities(1)));
    expect([[...greedy.tokens], [...greedy.logprobs]]).toEqual([[likeliest], [0]]);
    await expect(sampler.generate(request(5, { topK: 2 }))).rejects.toThrow(/leave topP, topK and minP off/);
  });

  it('learns to say what is rewarded, and only from what was published', async () => {
    const { sampler, learner, probabilities } = bigramPolicy({ vocabularySize: V });
    const before = await sampler.generate(request(3));
    for (let step = 0; step < 30; step++) {
      const generations = await Promise.all(
        Array.from({ length: 16 }, (_, i) => sampler.generate(request(100 * step + i, { maxTokens: 1 }))),
      );
      const rewards = generations.map(({ tokens }) => (tokens[0] === 2 ? 1 : 0));
      const mean = rewards.reduce<number>((a, b) => a + b, 0) / rewards.length;
      await learner.forwardBackward(
        {
          temperature: 1,
          sequences: generations.map(({ tokens }) => ({
            tokens: Int32Array.of(1, ...tokens),
            predict: Uint8Array.of(0, 1),
          })),
          inputs: { advantages: rewards.map(reward => Float32Array.of(reward - mean)) },
        },
        { ...reinforce, entropy: true },
      );
      await learner.optimizerStep({ lr: 0.3 });
      if (step === 0) expect(await sampler.generate(request(3))).toEqual(before);
      await sampler.publish(learner);
    }
    expect(probabilities(1)[2]).toBeGreaterThan(0.9);
    expect(sampler.version).toBe(30);
    const reference = await learner.forward(
      { temperature: 1, sequences: [{ tokens: Int32Array.of(1, 2), predict: Uint8Array.of(0, 1) }] },
      { weights: 'reference' },
    );
    expect(reference.logprobs[0]![0]).toBeCloseTo(-Math.log(4), 6);
  });

  it('goes on exactly from what it saved', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'bigram-'));
    try {
      const first = bigramPolicy({ vocabularySize: V, logits: LOGITS });
      await first.learner.forwardBackward(batch, reinforce);
      await first.learner.optimizerStep({ lr: 0.3 });
      await first.learner.save(directory);
      const second = bigramPolicy({ vocabularySize: V });
      await second.learner.load(directory);
      expect(second.learner.version).toBe(1);
      for (let row = 0; row < V; row++) expect(second.probabilities(row)).toEqual(first.probabilities(row));
      expect(await second.learner.forward(batch, { weights: 'reference' })).toEqual(
        await first.learner.forward(batch, { weights: 'reference' }),
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('refuses a gradient that is not finite and keeps its weights', async () => {
    const { learner, probabilities } = bigramPolicy({ vocabularySize: V, logits: LOGITS });
    const before = probabilities(3);
    const bad = { ...batch, inputs: { advantages: [Float32Array.of(1), Float32Array.of(Number.NaN, 1)] } };
    await learner.forwardBackward(bad, reinforce);
    await expect(learner.optimizerStep({ lr: 1 })).rejects.toThrow(/gradient norm is NaN/);
    expect([learner.version, probabilities(3)]).toEqual([0, before]);
    await learner.forwardBackward(batch, reinforce);
    expect((await learner.optimizerStep({ lr: 1 })).gradNorm).toBeGreaterThan(0);
  });
});
