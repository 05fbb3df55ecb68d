import { describe, expect, it } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
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
  learner.optimizerStep(0.01);
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
    const { gradNorm } = learner.optimizerStep(0.01);
    await learner.close();
    expect(gradNorm).toBeCloseTo(Math.hypot(...gradient), 5);
    expect(gradNorm).toBeGreaterThan(0.01);
    const { firstMoment } = learner.optimizerState();
    // After one step the first moment is (1 − β₁)·gradient.
    expect(Math.hypot(...firstMoment) / 0.1).toBeCloseTo(0.01, 5);
  });

  it('computes nothing for a batch without predictions', async () => {
    const model = new Model(goldenModel('qwen2'));
    const learner = new OnnxLearnerCore(model, hostOptions('qwen2').learner);
    const empty = { ...batch, sequences: [{ tokens: Int32Array.of(1), predict: Uint8Array.of(0) }] };
    expect(await learner.forward(empty)).toEqual({ logprobs: [new Float32Array(0)], entropy: [new Float32Array(0)] });
    const nothing = { ...empty, inputs: { weights: [new Float32Array(0)] } };
    expect(await learner.forwardBackward(nothing, record(likelihoodLoss()))).toEqual({ loss: 0, gpt_loss: 0 });
    expect(() => learner.optimizerStep(0.01)).toThrow(/needs a gradient/);
    await learner.close();
  });
});
