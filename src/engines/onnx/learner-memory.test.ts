import { describe, expect, it } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
import { goldenModel, LORA_CASES, loraGolden, SCORE_MODELS, scoreGolden } from '../../../tests/support/goldens.ts';
import type { Loss } from '../../algorithms/ops.ts';
import type { LossBatch } from '../contracts.ts';
import { OnnxLearnerCore } from './learner.ts';
import { record } from './loss-program.ts';
import { Model } from './model.ts';

/** Whatever saves memory leaves the numbers as they are. */

/** Reads log-probs not only in proportion, and the entropy. */
const LOSS: Loss = {
  key: 'test-squares',
  inputs: ['weights'],
  entropy: true,
  build(ops, { logprobs, entropy, inputs }) {
    const each = ops.add(ops.mul(logprobs, logprobs), entropy!);
    return { loss: ops.sum(ops.mul(inputs.weights!, each)), metrics: { entropy: ops.sum(entropy!) } };
  },
};
const VALUES: Loss = {
  key: 'test-values',
  inputs: ['weights'],
  entropy: false,
  values: true,
  build(ops, { values, inputs }) {
    return { loss: ops.sum(ops.mul(inputs.weights!, ops.mul(values!, values!))), metrics: {} };
  },
};

const sequences = [3, 12, 7, 2, 9, 5].map((length, n) => ({
  tokens: Int32Array.from({ length }, (_, t) => (11 * n + 3 * t * t) % 19),
  predict: Uint8Array.from({ length }, (_, t) => Number(t > 0 && (t + n) % 3 > 0)),
}));
const batch: LossBatch = {
  temperature: 0.7,
  sequences,
  inputs: { weights: sequences.map(({ predict }) => new Float32Array(predict.filter(Boolean).length).fill(0.3)) },
};

async function computed(model: Model, options: Parameters<typeof hostOptions>[1], loss = LOSS) {
  const learner = new OnnxLearnerCore(model, hostOptions('', options).learner);
  const totals = await learner.forwardBackward(batch, record(loss));
  const gradient = learner.gradient();
  const forward = loss.values ? await learner.values(batch) : await learner.forward(batch);
  await learner.close();
  return { totals, gradient, forward };
}

type Computed = Awaited<ReturnType<typeof computed>>;

function expectClose(found: Computed, whole: Computed): void {
  expect(found.totals.loss! / whole.totals.loss!).toBeCloseTo(1, 5);
  for (const [name, values] of Object.entries(whole.gradient)) {
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    expect(largest).toBeGreaterThan(name.includes('lora_a') ? -1 : 0);
    for (const [i, value] of values.entries()) {
      // Sums over the vocabulary in another order.
      expect(Math.abs(found.gradient[name]![i]! - value)).toBeLessThanOrEqual(1e-5 * largest);
    }
  }
}

/** Tied and untied heads, and one with capped logits. */
const MODELS = ['grouped-tied', 'full-untied-sharded', 'gemma2', 'qwen2'];
/** Some dozens of logits at a time: with 256 tokens a micro-batch, one row of the vocabulary a block, or a few. */
const BLOCKS = [1, 8000];

describe('a vocabulary in blocks', () => {
  it.each(MODELS)('has the gradients, log-probs and entropies of the whole: %s', async name => {
    const whole = await computed(new Model(goldenModel(name)), {});
    for (const logitsBytes of BLOCKS) {
      const blocks = await computed(new Model(goldenModel(name)), { learner: { logitsBytes } });
      expectClose(blocks, whole);
      expect(blocks.totals.entropy! / whole.totals.entropy!).toBeCloseTo(1, 5);
      const [a, b] = [blocks.forward, whole.forward] as { logprobs: Float32Array[]; entropy: Float32Array[] }[];
      for (const key of ['logprobs', 'entropy'] as const) {
        b![key].forEach((row, s) => {
          row.forEach((value, p) => void expect(Math.abs(a![key][s]![p]! - value)).toBeLessThan(1e-5));
        });
      }
    }
  });

  it('has them in micro-batches, too, and under an adapter', async () => {
    const whole = await computed(new Model(goldenModel('qwen2')), {});
    expectClose(
      await computed(new Model(goldenModel('qwen2')), { learner: { logitsBytes: 500, maxTokens: 16 } }),
      whole,
    );
    for (const name of LORA_CASES.filter(name => name !== 'score')) {
      const data = loraGolden(name);
      const open = () => new Model(data.base, undefined, undefined, { directory: data.directory });
      expectClose(await computed(open(), { learner: { logitsBytes: 1000 } }), await computed(open(), {}));
    }
  });
});

describe('recomputed activations', () => {
  it.each([...MODELS, 'phi3', 'qwen3-biases'])('leave loss and gradients as they are, bit for bit: %s', async name => {
    for (const learner of [{}, { logitsBytes: 8000 }]) {
      const kept = await computed(new Model(goldenModel(name)), { learner });
      expect(await computed(new Model(goldenModel(name)), { learner: { ...learner, recompute: true } })).toEqual(kept);
    }
  });

  it('do so under an adapter, and with a value head', async () => {
    for (const name of LORA_CASES) {
      const data = loraGolden(name);
      const open = () => new Model(data.base, undefined, undefined, { directory: data.directory });
      const loss = name === 'score' ? VALUES : LOSS;
      expect(await computed(open(), { learner: { recompute: true } }, loss)).toEqual(await computed(open(), {}, loss));
    }
    const score = () => new Model(scoreGolden(SCORE_MODELS[0]!).directory);
    expect(await computed(score(), { learner: { recompute: true } }, VALUES)).toEqual(
      await computed(score(), {}, VALUES),
    );
  });
});
