import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostOptions, TINY_VOCABULARY, tinyModel } from '../../../tests/support/engines.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import { valueLoss } from '../../algorithms/losses/value.ts';
import { openCheckpoint } from '../../nn/checkpoint/directory.ts';
import type { LossBatch } from '../contracts.ts';
import { OnnxEngine } from './engine.ts';
import { OnnxLearnerCore } from './learner.ts';
import { record } from './loss-program.ts';
import { Model } from './model.ts';
import { openModel } from './open-model.ts';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-critic-'));
});
afterAll(() => rmSync(root, { recursive: true }));

const LOSS = valueLoss({ clip: 0.5 });
const { learner: LEARNER } = hostOptions('');

/** Ragged sequences with a return for each predicted token. */
function batchOf(): LossBatch {
  const sequences = [5, 9, 3].map((length, n) => ({
    tokens: Int32Array.from({ length }, (_, t) => (7 * n + 5 * t + t * t) % TINY_VOCABULARY),
    predict: Uint8Array.from({ length }, (_, t) => (t > 0 && (t + n) % 3 !== 0 ? 1 : 0)),
  }));
  const perToken = (value: (n: number, p: number) => number) =>
    sequences.map(({ predict }, n) =>
      Float32Array.from({ length: predict.filter(Boolean).length }, (_, p) => value(n, p)),
    );
  const share = perToken(() => 0.1);
  const inputs = {
    returns: perToken((n, p) => Math.sin(3 * n + p)),
    old_values: perToken(() => 0),
    weights: share,
    share,
  };
  return { temperature: 1, sequences, inputs };
}

/** A value model whose head is not zero, so that every parameter has a gradient. */
function valueModel(): Model {
  const model = new Model(tinyModel(root), 5, 'score');
  const head = model.layout.find(({ name }) => name === 'score')!;
  for (let i = 0; i < head.size; i++) model.weights[head.offset + i] = Math.sin(i + 1) / 2;
  return model;
}

describe('a value model', () => {
  it('takes the backbone of a language model and says 0 at first', async () => {
    const language = openModel(tinyModel(root, { tie_word_embeddings: false }), { initSeed: 5 });
    const value = openModel(tinyModel(root, { tie_word_embeddings: false }), { initSeed: 5, head: 'score' });
    const names = (model: typeof value) => model.layout.map(({ name }) => name);
    expect(names(value)).toEqual(names(language).map(name => (name === 'lm_head' ? 'score' : name)));
    const size = value.layout.at(-1)!.offset;
    expect(value.weights.subarray(0, size)).toEqual(language.weights.subarray(0, size));
    expect(new Set(value.weights.subarray(size))).toEqual(new Set([0]));
    expect(value.rawConfig.architectures).toEqual(['LlamaForSequenceClassification']);

    const learner = new OnnxLearnerCore(new Model(tinyModel(root), 5, 'score'), LEARNER);
    for (const row of await learner.values(batchOf())) for (const value of row) expect(value).toBe(0);
    await learner.close();
  });

  it('has the gradient of its loss, by finite differences', async () => {
    const model = valueModel();
    const learner = new OnnxLearnerCore(model, LEARNER);
    const program = record(LOSS);
    const batch = batchOf();
    await learner.forwardBackward(batch, program);
    const gradient = learner.gradient();
    const lossAt = async (index: number, delta: number) => {
      const before = model.weights[index]!;
      model.weights[index] = before + delta;
      const { loss } = await learner.forwardBackward(batch, program);
      model.weights[index] = before;
      learner.zeroGrad();
      return loss!;
    };
    const largest = Math.max(...Object.values(gradient).flatMap(values => [...values].map(Math.abs)));
    for (const { name, offset, size } of model.layout) {
      const values = gradient[name]!;
      const i = values.reduce((best, value, at) => (Math.abs(value) > Math.abs(values[best]!) ? at : best), 0);
      expect(values.length).toBe(size);
      const slope = ((await lossAt(offset + i, 1e-2)) - (await lossAt(offset + i, -1e-2))) / 2e-2;
      // Float32 losses of size 1 differ by 1e-7, over steps of 2e-2; the curvature adds the rest.
      expect(Math.abs(slope - values[i]!), name).toBeLessThan(0.01 * largest + 1e-4);
    }
    await learner.close();
  });

  it('learns in a thread of its own, and is saved, loaded and written', async () => {
    const options = hostOptions(tinyModel(root), { initSeed: 5 });
    const critic = await OnnxEngine.start({ ...options, head: 'score' });
    const batch = batchOf();
    const update = async () => {
      const { loss } = await critic.forwardBackward(batch, LOSS);
      await critic.optimizerStep({ lr: 0.02 });
      return loss!;
    };
    const losses = [await update(), await update(), await update()];
    expect(losses.toSorted((a, b) => b - a)).toEqual(losses);
    await critic.save(join(root, 'state'));
    const after = [await update(), await critic.values(batch)];
    await critic.load(join(root, 'state'));
    expect(critic.version).toBe(3);
    expect([await update(), await critic.values(batch)]).toEqual(after);

    await critic.export(join(root, 'written'));
    expect(openCheckpoint(join(root, 'written')).config.head).toBe('score');
    const opened = new OnnxLearnerCore(new Model(join(root, 'written'), undefined, 'score'), LEARNER);
    expect(await opened.values(batch)).toEqual(after[1]);
    await opened.close();

    await expect(critic.forward(batch)).rejects.toThrow(/predicts values, and was asked about tokens/);
    await expect(critic.forwardBackward(batch, likelihoodLoss())).rejects.toThrow(
      /reads log-probs, and the model has a value head instead/,
    );
    await critic.close();
    expect(JSON.parse(readFileSync(join(root, 'written', 'config.json'), 'utf8')).architectures).toEqual([
      'LlamaForSequenceClassification',
    ]);
  });

  it('is not what a policy is', async () => {
    const learner = new OnnxLearnerCore(new Model(tinyModel(root), 5), LEARNER);
    await expect(learner.values(batchOf())).rejects.toThrow(/predicts tokens, and was asked about values/);
    await expect(learner.forwardBackward(batchOf(), record(LOSS))).rejects.toThrow(
      /reads a value head, and the model has none/,
    );
    await learner.close();
  });
});
