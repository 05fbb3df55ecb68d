import { describe, expect, it } from 'vitest';
import { likelihoodLoss } from '../algorithms/losses/likelihood.ts';
import { scriptedLearner } from './scripted-learner.ts';

describe('scriptedLearner', () => {
  it('records its calls and gives what a learner gives', async () => {
    const learner = scriptedLearner();
    const batch = { temperature: 1, sequences: [{ tokens: Int32Array.of(1, 2), predict: Uint8Array.of(0, 1) }] };
    const { logprobs } = await learner.forward(batch, { weights: 'reference' });
    expect(logprobs[0]![0]).toBeCloseTo(-Math.log(260), 6);
    const loss = likelihoodLoss();
    const lossBatch = { ...batch, inputs: { weights: [Float32Array.of(1)] } };
    expect((await learner.forwardBackward(lossBatch, loss)).loss).toBeCloseTo(Math.log(260), 6);
    expect((await learner.optimizerStep({ lr: 0.5 })).gradNorm).toBeCloseTo(
      Math.sqrt((259 / 260) ** 2 + 259 / 260 ** 2),
    );
    expect(learner.version).toBe(1);
    expect(learner.calls).toEqual([
      { method: 'forward', args: [batch, { weights: 'reference' }] },
      { method: 'forwardBackward', args: [lossBatch, loss] },
      { method: 'optimizerStep', args: [{ lr: 0.5 }] },
    ]);
  });

  it('fails when the script says so', async () => {
    const learner = scriptedLearner({
      before: ({ method }, index) => {
        if (method === 'save' && index === 1) throw new Error('no space left on device');
      },
    });
    await learner.zeroGrad();
    await expect(learner.save('anywhere')).rejects.toThrow('no space left');
    expect(learner.calls).toHaveLength(2);
  });
});
