import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { hostOptions, tinyModel } from '../../../tests/support/engines.ts';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import { view } from '../../nn/models/parameters.ts';
import { OnnxLearnerCore } from './learner.ts';
import { record } from './loss-program.ts';
import { Model } from './model.ts';

const batch = {
  temperature: 1,
  sequences: [{ tokens: Int32Array.of(1, 2, 3), predict: Uint8Array.of(0, 1, 1) }],
  inputs: { weights: [Float32Array.of(0.5, 0.5)] },
};

async function stepped(options: Parameters<typeof hostOptions>[1]): Promise<Model> {
  const model = new Model(goldenModel('qwen2'));
  const learner = new OnnxLearnerCore(model, hostOptions('qwen2', options).learner);
  await learner.forwardBackward(batch, record(likelihoodLoss()));
  await learner.optimizerStep(0.01);
  await learner.close();
  return model;
}

describe('OnnxLearnerCore', () => {
  it('decays matrices and spares norms and biases', async () => {
    const [without, decayed] = await Promise.all([0, 0.5].map(weightDecay => stepped({ learner: { weightDecay } })));
    const kinds = new Set<boolean>();
    for (const parameter of without!.layout) {
      const [a, b] = [view(without!.weights, parameter), view(decayed!.weights, parameter)];
      const spared = /norm|bias/.test(parameter.name);
      kinds.add(spared);
      if (spared) expect(b).toEqual(a);
      else expect(b).not.toEqual(a);
    }
    expect(kinds.size).toBe(2);
  });

  it('clips the gradient to its norm, and tells the norm before', async () => {
    const model = new Model(goldenModel('qwen2'));
    const learner = new OnnxLearnerCore(model, hostOptions('qwen2', { learner: { maxNorm: 0.01 } }).learner);
    await learner.forwardBackward(batch, record(likelihoodLoss()));
    const gradient = Object.values(learner.gradient()).flatMap(values => [...values]);
    const { gradNorm } = await learner.optimizerStep(0.01);
    await learner.close();
    expect(gradNorm).toBeCloseTo(Math.hypot(...gradient), 5);
    expect(gradNorm).toBeGreaterThan(0.01);
    const { firstMoment } = learner.optimizerState();
    // After one step the first moment is (1 − β₁)·gradient.
    expect(Math.hypot(...firstMoment) / 0.1).toBeCloseTo(0.01, 5);
  });

  it.each([1, 9, 20, 64])('has the same gradient in micro-batches of %d tokens as in one', async maxTokens => {
    const sequences = [3, 12, 7, 2, 9, 5].map((length, n) => ({
      tokens: Int32Array.from({ length }, (_, t) => (11 * n + 3 * t * t) % 40),
      predict: Uint8Array.from({ length }, (_, t) => (t === 0 ? 0 : 1)),
    }));
    const weights = sequences.map(({ tokens }, n) => new Float32Array(tokens.length - 1).fill(0.1 * (n + 1)));
    const accumulated = async (budget: number) => {
      const model = new Model(goldenModel('qwen2'));
      const learner = new OnnxLearnerCore(model, hostOptions('', { learner: { maxTokens: budget } }).learner);
      const totals = await learner.forwardBackward(
        { temperature: 0.9, sequences, inputs: { weights } },
        record(likelihoodLoss()),
      );
      const gradient = learner.gradient();
      await learner.close();
      return { totals, gradient };
    };
    const [whole, split] = [await accumulated(4096), await accumulated(maxTokens)];
    expect(Math.abs(split.totals.loss! / whole.totals.loss! - 1)).toBeLessThan(1e-5);
    for (const [name, values] of Object.entries(whole.gradient)) {
      const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      // Float32 sums in another order.
      for (const [i, value] of values.entries()) {
        expect(Math.abs(split.gradient[name]![i]! - value)).toBeLessThan(1e-5 * largest);
      }
    }
  });

  it('has the same gradient, bit for bit, on one thread and on two, in a model large enough to use both', async () => {
    const root = mkdtempSync(join(tmpdir(), 'tokenloop-learner-'));
    const directory = tinyModel(root, { vocab_size: 300, hidden_size: 96, intermediate_size: 256 });
    const sequences = Array.from({ length: 24 }, (_, n) => ({
      // Tokens repeat, so that many positions add to one row of the embedding.
      tokens: Int32Array.from({ length: 20 + n }, (_, t) => (n * t + t * t) % 50),
      predict: Uint8Array.from({ length: 20 + n }, (_, t) => (t > 0 && t % 3 !== 0 ? 1 : 0)),
    }));
    const weights = sequences.map(({ predict }) => new Float32Array(predict.filter(mark => mark === 1).length).fill(1));
    const gradients = [];
    for (const threads of [1, 2, 2]) {
      const { learner: options } = hostOptions('', { learner: { threads, maxTokens: 512 } });
      const learner = new OnnxLearnerCore(new Model(directory, 1), options);
      await learner.forwardBackward({ temperature: 1, sequences, inputs: { weights } }, record(likelihoodLoss()));
      gradients.push(learner.gradient());
      await learner.close();
    }
    rmSync(root, { recursive: true });
    for (const gradient of gradients.slice(1)) expect(gradient).toEqual(gradients[0]);
  });

  it('computes nothing for a batch without predictions', async () => {
    const model = new Model(goldenModel('qwen2'));
    const learner = new OnnxLearnerCore(model, hostOptions('qwen2').learner);
    const empty = { ...batch, sequences: [{ tokens: Int32Array.of(1), predict: Uint8Array.of(0) }] };
    expect(await learner.forward(empty)).toEqual({ logprobs: [new Float32Array(0)], entropy: [new Float32Array(0)] });
    const nothing = { ...empty, inputs: { weights: [new Float32Array(0)] } };
    expect(await learner.forwardBackward(nothing, record(likelihoodLoss()))).toEqual({ loss: 0, gpt_loss: 0 });
    await expect(learner.optimizerStep(0.01)).rejects.toThrow(/needs a gradient/);
    await learner.close();
  });

  it('gives gradients and optimizer state back to the memory, and goes on as if it had kept them', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const held = () => {
      // The first collection may leave buffers to a sweeper that works beside it; the second waits for it.
      collect();
      collect();
      return process.memoryUsage().arrayBuffers;
    };
    const root = mkdtempSync(join(tmpdir(), 'tokenloop-learner-'));
    // 1.2 million weights: 4.7 MB each for gradient, first and second moment.
    const directory = tinyModel(root, { hidden_size: 128, intermediate_size: 1024, num_hidden_layers: 3 });
    const weights: Float32Array[] = [];
    for (const offloads of [false, true]) {
      const model = new Model(directory, 3);
      const learner = new OnnxLearnerCore(model, hostOptions(directory).learner);
      expect(learner.offload()).toBe(0);
      for (let step = 0; step < 3; step++) {
        await learner.forwardBackward(batch, record(likelihoodLoss()));
        if (offloads) expect(() => learner.offload()).toThrow(/a gradient is waiting/);
        await learner.optimizerStep(0.01);
        if (!offloads) continue;
        const before = held();
        const freed = learner.offload();
        expect(freed).toBe(3 * model.weights.byteLength);
        // Other buffers may go at the same collection, and none may come.
        expect(before - held()).toBeGreaterThanOrEqual(freed);
        expect(learner.offload()).toBe(0);
      }
      expect(learner.optimizerState().step).toBe(3);
      weights.push(model.weights, learner.optimizerState().secondMoment);
      await learner.close();
    }
    rmSync(root, { recursive: true });
    expect(weights.slice(2)).toEqual(weights.slice(0, 2));
  });
});
