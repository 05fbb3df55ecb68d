import { describe, expect, it } from 'vitest';
import { scriptedLearner } from './scripted-learner.ts';

describe('scriptedLearner', () => {
  it('records its calls and gives what a learner gives', async () => {
    const learner = scriptedLearner();
    const batch = { temperature: 1, sequences: [{ tokens: Int32Array.of(1, 2), predict: Uint8Array.of(0, 1) }] };
    const { logprobs } = await learner.forward(batch, { weights: 'reference' });
    expect(logprobs[0]![0]).toBeCloseTo(-Math.log(260), 6);
    expect(await learner.optimizerStep({ lr: 0.5 })).toEqual({ gradNorm: 0, lr: 0.5 });
    expect(learner.version).toBe(1);
    expect(learner.calls).toEqual([
      { method: 'forward', args: [batch, { weights: 'reference' }] },
      { method: 'optimizerStep', args: [{ lr: 0.5 }] },
    ]);
  });

  it('fails when the script says so', async () => {
    const learner = scriptedLearner({
      before: ({ method }, index) => {
        if (method === 'optimizerStep' && index === 1) throw new Error('no space left on device');
      },
    });
    await learner.optimizerStep({ lr: 1 });
    await expect(learner.optimizerStep({ lr: 1 })).rejects.toThrow('no space left');
    expect(learner.version).toBe(1);
  });
});
