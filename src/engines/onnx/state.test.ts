import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import { OnnxLearnerCore } from './learner.ts';
import { record } from './loss-program.ts';
import { Model } from './model.ts';
import { loadState, saveState } from './state.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-state-'));
});
const open: OnnxLearnerCore[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(learner => learner.close()));
  rmSync(root, { recursive: true });
});

const batch = {
  temperature: 1,
  sequences: [{ tokens: Int32Array.of(1, 2, 3), predict: Uint8Array.of(0, 1, 1) }],
  inputs: { weights: [Float32Array.of(0.5, 0.5)] },
};

async function trained(name: string, steps: number, options: Parameters<typeof hostOptions>[1] = {}) {
  const model = new Model(goldenModel(name));
  const learner = new OnnxLearnerCore(model, hostOptions(name, options).learner);
  open.push(learner);
  for (let step = 0; step < steps; step++) {
    await learner.forwardBackward(batch, record(likelihoodLoss()));
    await learner.optimizerStep(0.01);
  }
  return { model, learner };
}

/** Everything that a state is made of, copied. */
function snapshot({ model, learner }: Awaited<ReturnType<typeof trained>>) {
  return structuredClone({ version: model.version, weights: model.weights, optimizer: learner.optimizerState() });
}

describe('the state of an engine', () => {
  it('is the same after it was saved and loaded elsewhere', async () => {
    const source = await trained('mistral', 3);
    const directory = join(root, 'state');
    await saveState(directory, source.model, source.learner);
    const target = await trained('mistral', 1);
    await target.learner.forwardBackward(batch, record(likelihoodLoss()));
    await loadState(directory, target.model, target.learner);
    expect(snapshot(target)).toEqual(snapshot(source));
    expect(target.model.version).toBe(3);
    await expect(target.learner.optimizerStep(0.01)).rejects.toThrow(/needs a gradient/);
  });

  it('goes on under Muon as if it had not been interrupted, and is refused by another optimizer', async () => {
    const muon = { lrRatio: 2, momentum: 0.9, nesterov: true, steps: 3 };
    const whole = await trained('mistral', 5, { learner: { muon } });
    const source = await trained('mistral', 3, { learner: { muon } });
    const directory = join(root, 'state');
    await saveState(directory, source.model, source.learner);
    const target = await trained('mistral', 0, { learner: { muon } });
    await loadState(directory, target.model, target.learner);
    for (let step = 0; step < 2; step++) {
      await target.learner.forwardBackward(batch, record(likelihoodLoss()));
      await target.learner.optimizerStep(0.01);
    }
    expect(snapshot(target)).toEqual(snapshot(whole));
    const adam = await trained('mistral', 0);
    await expect(loadState(directory, adam.model, adam.learner)).rejects.toThrow(
      /the state is of muon, and the optimizer is adam/,
    );
  });

  const damaged: [string, (directory: string) => void, RegExp][] = [
    ['cut short', directory => truncateSync(join(directory, 'state.safetensors'), 2000), /state\.safetensors/],
    ['without its description', directory => rmSync(join(directory, 'state.json')), /state\.json/],
    [
      'with half of its description',
      directory => truncateSync(join(directory, 'state.json'), 20),
      /state\.json: not the description of a state/,
    ],
    [
      'without a tensor',
      directory => {
        const path = join(directory, 'state.safetensors');
        writeFileSync(
          path,
          readFileSync(path).toString('latin1').replace('second_moment', 'second_nothing'.slice(0, 13)),
          'latin1',
        );
      },
      /no tensor "second_moment"/,
    ],
  ];
  it.each(damaged)('is refused whole when it is %s', async (_, damage, message) => {
    const source = await trained('mistral', 2);
    const directory = join(root, 'state');
    await saveState(directory, source.model, source.learner);
    damage(directory);
    const target = await trained('mistral', 1);
    const before = snapshot(target);
    await expect(loadState(directory, target.model, target.learner)).rejects.toThrow(message);
    expect(snapshot(target)).toEqual(before);
  });

  it('is refused by another model', async () => {
    const source = await trained('mistral', 1);
    await saveState(join(root, 'state'), source.model, source.learner);
    const target = await trained('qwen2', 1);
    await expect(loadState(join(root, 'state'), target.model, target.learner)).rejects.toThrow(
      /belongs to a model with other parameters than .*qwen2/,
    );
  });
});
