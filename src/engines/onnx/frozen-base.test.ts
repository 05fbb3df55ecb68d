import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
import { golden, goldenModel } from '../../../tests/support/goldens.ts';
import type { Loss } from '../../algorithms/ops.ts';
import { openCheckpoint, writeCheckpoint } from '../../nn/checkpoint/directory.ts';
import { FROZEN_DTYPES, type FrozenDType } from '../../nn/frozen.ts';
import { isMatrixOfLayer, view } from '../../nn/models/parameters.ts';
import { DEFAULT_SAMPLING, type Generation, type LossBatch } from '../contracts.ts';
import { exportModel } from './export.ts';
import { onnxPolicy } from './index.ts';
import { OnnxLearnerCore } from './learner.ts';
import { record } from './loss-program.ts';
import { Model } from './model.ts';
import type { HostOptions } from './protocol.ts';
import { OnnxSamplerCore } from './sampler.ts';
import { loadState, saveState } from './state.ts';

/** An adapter on a base in 8 or 4 bits is one on the float32 base that those bits stand for. */

const root = mkdtempSync(join(tmpdir(), 'tokenloop-frozen-'));
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(each => each.close()));
});
afterAll(() => rmSync(root, { recursive: true }));

const LORA = { rank: 3, alpha: 8, targetModules: 'all-linear', seed: 5 } as const;
const LOSS: Loss = {
  key: 'test-squares',
  inputs: ['weights'],
  entropy: true,
  build(ops, { logprobs, entropy, inputs }) {
    const each = ops.add(ops.mul(logprobs, logprobs), entropy!);
    return { loss: ops.sum(ops.mul(inputs.weights!, each)), metrics: {} };
  },
};

/** With an adapter that changes something. */
function adapted(directory: string, frozen?: FrozenDType): Model {
  const model = new Model(directory, undefined, undefined, { ...LORA, frozen });
  for (let i = 0; i < model.weights.length; i++) model.weights[i]! += 0.1 * Math.sin(i);
  return model;
}

function learnerOf(model: Model, options: Partial<HostOptions['learner']> = {}): OnnxLearnerCore {
  const learner = new OnnxLearnerCore(model, hostOptions('', { learner: options }).learner);
  open.push(learner);
  return learner;
}

/** A checkpoint of what the bits stand for. */
async function thawed(name: string, dtype: FrozenDType): Promise<string> {
  const { layout, weights, rawConfig } = openCheckpoint(goldenModel(name));
  const model = new Model(goldenModel(name), undefined, undefined, { ...LORA, frozen: dtype });
  for (const parameter of layout.filter(isMatrixOfLayer)) {
    view(weights, parameter).set(model.thawed(parameter.name));
  }
  const directory = join(root, `${name}-${dtype}`);
  await writeCheckpoint(directory, { rawConfig, layout, weights });
  return directory;
}

function batchOf(name: string): LossBatch {
  const sequences = golden(name).sequences.map((tokens, n) => ({
    tokens: Int32Array.from(tokens),
    predict: Uint8Array.from(tokens, (_, t) => Number(t > 0 && (t + n) % 3 > 0)),
  }));
  const weights = sequences.map(({ predict }) => new Float32Array(predict.filter(Boolean).length).fill(0.3));
  return { temperature: 0.7, sequences, inputs: { weights } };
}

async function computed(learner: OnnxLearnerCore, batch: LossBatch) {
  const { loss } = await learner.forwardBackward(batch, record(LOSS));
  return { loss: loss!, gradient: learner.gradient(), logprobs: (await learner.forward(batch)).logprobs };
}

/** Blocks that lie in two rows; biases and norms of queries; fused tensors. */
const MODELS = ['grouped-tied', 'qwen3-biases', 'phi3'];

describe.each(FROZEN_DTYPES)('a base in %s', dtype => {
  it.each(MODELS)('has the log-probs and the gradient of what it stands for: %s', async name => {
    const batch = batchOf(name);
    const expected = await computed(learnerOf(adapted(await thawed(name, dtype))), batch);
    for (const options of [{}, { recompute: true, logitsBytes: 8000 }]) {
      const found = await computed(learnerOf(adapted(goldenModel(name), dtype), options), batch);
      expect(found.loss / expected.loss).toBeCloseTo(1, 5);
      for (const [s, row] of expected.logprobs.entries()) {
        // Float32 products in another order.
        for (const [t, value] of row.entries()) expect(Math.abs(found.logprobs[s]![t]! - value)).toBeLessThan(2e-5);
      }
      for (const [parameter, values] of Object.entries(expected.gradient)) {
        const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
        expect(largest).toBeGreaterThan(0);
        for (const [i, value] of values.entries()) {
          expect(Math.abs(found.gradient[parameter]![i]! - value)).toBeLessThanOrEqual(1e-4 * largest);
        }
      }
    }
  });

  it('is not the base in float32', async () => {
    const batch = batchOf('grouped-tied');
    const exact = await computed(learnerOf(adapted(goldenModel('grouped-tied'))), batch);
    const frozen = await computed(learnerOf(adapted(goldenModel('grouped-tied'), dtype)), batch);
    const differences = exact.logprobs.flatMap((row, s) =>
      [...row].map((v, t) => Math.abs(v - frozen.logprobs[s]![t]!)),
    );
    expect(Math.max(...differences)).toBeGreaterThan(dtype === 'nf4' ? 1e-2 : 1e-3);
  });

  it('gives the adapter the gradient that finite differences give', async () => {
    const batch = batchOf('grouped-tied');
    const model = adapted(goldenModel('grouped-tied'), dtype);
    const learner = learnerOf(model);
    await learner.forwardBackward(batch, record(LOSS));
    const gradient = Float32Array.from(Object.values(learner.gradient()).flatMap(each => [...each]));
    const norm = Math.hypot(...gradient);
    const start = model.weights.slice();
    const lossAt = async (step: number) => {
      start.forEach((value, i) => {
        model.weights[i] = value + (step * gradient[i]!) / norm;
      });
      return (await learner.forwardBackward(batch, record(LOSS))).loss!;
    };
    const slope = async (step: number) => ((await lossAt(step)) - (await lossAt(-step))) / (2 * step);
    // The error of a central difference falls with the square of the step: two of them without its first term.
    const [coarse, fine] = [await slope(4e-3), await slope(2e-3)];
    expect((4 * fine - coarse) / 3 / norm).toBeCloseTo(1, 2);
  });

  it('is the base of the reference as well', async () => {
    const model = new Model(goldenModel('grouped-tied'), undefined, undefined, { ...LORA, frozen: dtype });
    const learner = learnerOf(model);
    const batch = batchOf('grouped-tied');
    const before = await learner.forward(batch);
    await learner.forwardBackward(batch, record(LOSS));
    await learner.optimizerStep(0.05);
    expect(await learner.forward(batch, 'reference')).toEqual(before);
    expect(await learner.forward(batch)).not.toEqual(before);
  });

  it.each(['float32', 'int8'] as const)('is sampled from, in %s, as it is learned', async sampling => {
    const model = adapted(goldenModel('grouped-tied'), dtype);
    const run = sampled(model, sampling);
    const learner = learnerOf(model);
    const differences = async () => {
      const generations = await run();
      const sequences = generations.map(({ tokens }, i) => ({
        tokens: Int32Array.from([...PROMPTS[i]!, ...tokens]),
        predict: Uint8Array.from([...PROMPTS[i]!.map(() => 0), ...[...tokens].map(() => 1)]),
      }));
      const { logprobs } = await learner.forward({ temperature: 1, sequences });
      return generations.flatMap(({ logprobs: own }, i) =>
        [...own].map((value, t) => Math.abs(value - logprobs[i]![t]!)),
      );
    };
    const check = async () => {
      const found = await differences();
      // As of a float32 base; in int8 the products are rounded besides (int8.test.ts).
      if (sampling === 'float32') expect(Math.max(...found)).toBeLessThan(1e-4);
      else expect(found.reduce((sum, each) => sum + each, 0) / found.length).toBeLessThan(0.1);
    };
    await check();
    for (let i = 0; i < model.weights.length; i++) model.weights[i]! += 0.3 * Math.sin(2 * i);
    (open.find(each => each instanceof OnnxSamplerCore) as OnnxSamplerCore).weightsChanged();
    await check();
  });

  it('goes on from a state bit for bit, and not on another base', async () => {
    const batch = batchOf('grouped-tied');
    const start = () => new Model(goldenModel('grouped-tied'), undefined, undefined, { ...LORA, frozen: dtype });
    const step = async (learner: OnnxLearnerCore) => {
      await learner.forwardBackward(batch, record(LOSS));
      await learner.optimizerStep(0.02);
    };
    const [model, other] = [start(), start()];
    const [learner, second] = [learnerOf(model), learnerOf(other)];
    await step(learner);
    const directory = join(root, `state-${dtype}`);
    await saveState(directory, model, learner);
    await loadState(directory, other, second);
    for (const each of [learner, second]) await step(each);
    expect(other.weights).toEqual(model.weights);
    const whole = new Model(goldenModel('grouped-tied'), undefined, undefined, LORA);
    await expect(loadState(directory, whole, learnerOf(whole))).rejects.toThrow(
      `the base of the adapter was kept in ${dtype}, and now it is in float32`,
    );
  });

  it('is written as the adapter, and merged into the base as it was read', async () => {
    const model = adapted(goldenModel('grouped-tied'), dtype);
    const directory = join(root, `export-${dtype}`);
    await exportModel(directory, model);
    const whole = adapted(goldenModel('grouped-tied'));
    await exportModel(join(root, 'export'), whole);
    expect(openCheckpoint(directory).weights).toEqual(openCheckpoint(join(root, 'export')).weights);
    const start = { directory: join(directory, 'adapter'), frozen: dtype };
    const again = new Model(goldenModel('grouped-tied'), undefined, undefined, start);
    expect(again.weights).toEqual(model.weights);
  });

  it('is refused on another device', async () => {
    const model = fileURLToPath(new URL('../../../examples/calculator-agent/model', import.meta.url));
    const policy = { model, lora: { rank: 2, frozen: dtype }, device: 'webgpu' } as const;
    await expect(onnxPolicy(policy)).rejects.toThrow(`a base in ${dtype} is for the cpu, and the device is webgpu`);
  });
});

const PROMPTS = Array.from({ length: 12 }, (_, i) => [1 + (i % 5), 7, i % 40]);

function sampled(model: Model, dtype: 'float32' | 'int8'): () => Promise<Generation[]> {
  const finished = new Map<number, Generation>();
  const events = {
    token: () => undefined,
    finished: (id: number, generation: Generation) => void finished.set(id, generation),
  };
  const core = new OnnxSamplerCore(model, { ...hostOptions('').sampler, prefixCacheBytes: 0, dtype }, events);
  open.push(core);
  const params = { ...DEFAULT_SAMPLING, maxTokens: 12 };
  return async () => {
    core.submit(
      PROMPTS.map((tokens, id) => ({ id, seed: id, tokens: Int32Array.from(tokens), params, streaming: false })),
    );
    while (core.busy) await core.step();
    return PROMPTS.map((_, id) => finished.get(id)!);
  };
}
