import { describe, expect, it } from 'vitest';
import { goldenModel, LORA_CASES, type LoraGolden, loraGolden } from '../../../tests/support/goldens.ts';
import { tokenMean } from '../../algorithms/aggregate.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import type { Loss } from '../../algorithms/ops.ts';
import type { LossBatch } from '../../engines/contracts.ts';
import { packBatch } from '../../engines/onnx/batch.ts';
import { OnnxLearnerCore } from '../../engines/onnx/learner.ts';
import { record } from '../../engines/onnx/loss-program.ts';
import { Model } from '../../engines/onnx/model.ts';
import { packedPositions } from '../../engines/onnx/positions.ts';
import { Session } from '../../engines/onnx/session.ts';
import { openCheckpoint } from '../checkpoint/directory.ts';
import { emit } from '../onnx.ts';
import { trainingForm, valueForm } from './decoder.ts';
import { adapterOf, initialiseAdapter, mergedTensors } from './lora.ts';
import { parameterCount, tensorPlaces, view } from './parameters.ts';
import { weightInputs } from './weights.ts';

/** Absolute on logits and values, of the largest element on gradients: the bar against PEFT. */
const TOLERANCE = 1e-4;
/** Absolute, on logits of merged and unmerged weights: float32 products in another order. */
const MERGED_TOLERANCE = 1e-5;
/** Absolute, on weights after updates of about 0.01 each: Adam divides gradients by their size, small ones too. */
const UPDATE_TOLERANCE = 1e-4;

const VALUES_SQUARED: Loss = {
  key: 'squares',
  inputs: ['weights'],
  entropy: false,
  values: true,
  build(ops, { values, inputs }) {
    return { loss: ops.sum(ops.mul(inputs.weights!, ops.mul(values!, values!))), metrics: {} };
  },
};

const modelOf = (data: LoraGolden) => new Model(data.base, undefined, undefined, { directory: data.directory });
const isScore = (data: LoraGolden) => data.tensors.has('values.0');

/** One more token at the end lets the output at the last one be seen. */
function batchOf(data: LoraGolden): LossBatch {
  const score = isScore(data);
  const sequences = data.sequences.map(tokens => ({
    tokens: Int32Array.from(score ? [...tokens, 0] : tokens),
    predict: Uint8Array.from([...tokens, ...(score ? [0] : [])], (_, t) => Number(score ? t === tokens.length : t > 0)),
  }));
  const counts = sequences.map(({ predict }) => predict.reduce((sum, mark) => sum + mark, 0));
  return { temperature: 1, sequences, inputs: { weights: tokenMean(counts) } };
}

/** Logits, or values, after every token of each sequence. */
async function outputs(data: LoraGolden, model: Model): Promise<Float32Array[]> {
  const weights = weightInputs(model.inputs, model);
  const result = isScore(data) ? valueForm(model.config, weights) : trainingForm(model.config, weights).logits;
  const session = await Session.create(emit({ result }), { threads: 1 });
  const all: Float32Array[] = [];
  for (const tokens of data.sequences) {
    const predict = Uint8Array.from([0, ...tokens.map(() => 1)]);
    const { feeds, symbols, rows } = packBatch([{ tokens: Int32Array.from([...tokens, 0]), predict }], model.config);
    const { targets: _, ...inputs } = feeds;
    const positions = packedPositions(model, rows);
    const run = await session.run({ ...model.views(model.weights), ...inputs, ...positions }, symbols);
    all.push(Float32Array.from(run.result as Float32Array));
  }
  await session.release();
  return all;
}

function furthest(actual: Float32Array, expected: Float32Array): number {
  expect(actual.length).toBe(expected.length);
  return actual.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
}

const largest = (values: Float32Array) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

describe.each(LORA_CASES)('the adapter %s', name => {
  const data = loraGolden(name);
  const loss = record(isScore(data) ? VALUES_SQUARED : likelihoodLoss());
  const learnerOf = (model: Model) => {
    const { betas, eps, weightDecay, maxNorm } = data.adamw;
    return new OnnxLearnerCore(model, { threads: 1, maxTokens: 4096, betas, eps, weightDecay, maxNorm });
  };
  /** By the names in the adapter file. */
  const byTensor = (model: Model, flat: Float32Array) =>
    new Map(
      tensorPlaces(model.layout).map(({ tensor, offset, size }) => [tensor, flat.subarray(offset, offset + size)]),
    );
  const expected = (prefix: string) =>
    [...data.tensors].flatMap(([key, value]) =>
      key.startsWith(`${prefix}.`) ? [[key.slice(prefix.length + 1), value] as const] : [],
    );

  it("has PEFT's outputs", async () => {
    const computed = await outputs(data, modelOf(data));
    for (const [i, values] of computed.entries()) {
      const own = isScore(data) ? values.subarray(-1) : values;
      const theirs = data.tensors.get(`${isScore(data) ? 'values' : 'logits'}.${i}`)!;
      expect(furthest(own, theirs)).toBeLessThan(TOLERANCE);
    }
  });

  it("has PEFT's gradient for every tensor, and for no other", async () => {
    const model = modelOf(data);
    const learner = learnerOf(model);
    const { loss: value } = await learner.forwardBackward(batchOf(data), loss);
    expect(value).toBeCloseTo(data.loss, 5);
    const flat = new Float32Array(parameterCount(model.layout));
    for (const [parameter, values] of Object.entries(learner.gradient())) {
      view(flat, model.layout.find(p => p.name === parameter)!).set(values);
    }
    await learner.close();
    const gradients = byTensor(model, flat);
    expect([...gradients.keys()].toSorted()).toEqual(
      expected('grad')
        .map(([tensor]) => tensor)
        .toSorted(),
    );
    for (const [tensor, theirs] of expected('grad')) {
      expect(furthest(gradients.get(tensor)!, theirs), tensor).toBeLessThan(TOLERANCE * largest(theirs));
    }
  });

  it("makes PyTorch's updates, and leaves the base alone", async () => {
    const model = modelOf(data);
    const { weights } = model.adapter!.base;
    const before = weights.slice();
    const learner = learnerOf(model);
    for (let step = 0; step < data.adamw.steps; step++) {
      await learner.forwardBackward(batchOf(data), loss);
      await learner.optimizerStep(data.adamw.lr);
    }
    await learner.close();
    const after = byTensor(model, model.weights);
    for (const [tensor, theirs] of expected('after')) {
      expect(furthest(after.get(tensor)!, theirs), tensor).toBeLessThan(UPDATE_TOLERANCE);
    }
    expect(weights).toEqual(before);
  });

  it('is the same model merged', async () => {
    const model = modelOf(data);
    const unmerged = await outputs(data, model);
    const { base } = model.adapter!;
    const merged = new Model(data.base);
    const read = mergedTensors(model.adapter!, model.weights, base.weights);
    for (const place of tensorPlaces(base.layout)) merged.weights.set(read(place), place.offset);
    expect(merged.weights).not.toEqual(base.weights);
    for (const [i, values] of (await outputs(data, merged)).entries()) {
      expect(furthest(values, unmerged[i]!)).toBeLessThan(MERGED_TOLERANCE);
    }
  });
});

describe('a new adapter', () => {
  const base = openCheckpoint(goldenModel('full-untied-sharded'));
  const adapter = adapterOf(base.layout, { rank: 4, alpha: 8, targetModules: 'all-linear' });

  it('has a factor pair for each linear layer of the blocks', () => {
    expect(adapter.targetModules).toEqual([
      'q_proj',
      'k_proj',
      'v_proj',
      'o_proj',
      'gate_proj',
      'up_proj',
      'down_proj',
    ]);
    const shapes = adapter.layout.slice(0, 10).map(({ name, shape }) => [name, shape]);
    // Hidden size 24, 3 heads of 8, inner size 28.
    expect(Object.fromEntries(shapes)).toEqual({
      'layers.0.qkv.lora_a': [12, 24],
      'layers.0.qkv.lora_b.0': [24, 4],
      'layers.0.qkv.lora_b.1': [24, 4],
      'layers.0.qkv.lora_b.2': [24, 4],
      'layers.0.o.lora_a': [4, 24],
      'layers.0.o.lora_b.0': [24, 4],
      'layers.0.gate_up.lora_a': [8, 24],
      'layers.0.gate_up.lora_b.0': [28, 4],
      'layers.0.gate_up.lora_b.1': [28, 4],
      'layers.0.down.lora_a': [4, 28],
    });
    let end = 0;
    for (const { offset, size } of adapter.layout) {
      expect(offset).toBe(end);
      end += size;
    }
  });

  it('adds only what is named', () => {
    const { layout } = adapterOf(base.layout, { rank: 4, alpha: 8, targetModules: ['v_proj', 'q_proj', 'v_proj'] });
    expect(layout.filter(({ name }) => name.startsWith('layers.0')).map(({ name, shape }) => [name, shape])).toEqual([
      ['layers.0.qkv.lora_a', [8, 24]],
      ['layers.0.qkv.lora_b.0', [24, 4]],
      ['layers.0.qkv.lora_b.2', [24, 4]],
    ]);
  });

  it('changes nothing: B is zero and A uniform, by the seed', () => {
    const weights = initialiseAdapter(adapter, base, 7);
    expect(initialiseAdapter(adapter, base, 7)).toEqual(weights);
    expect(initialiseAdapter(adapter, base, 8)).not.toEqual(weights);
    for (const parameter of adapter.layout) {
      const values = view(weights, parameter);
      const bound = 1 / Math.sqrt(parameter.shape[1]!);
      if (parameter.name.includes('lora_b')) expect(largest(values)).toBe(0);
      else expect(Math.abs(largest(values) / bound - 0.95)).toBeLessThan(0.05);
    }
    const merge = mergedTensors(adapter, weights, base.weights);
    for (const place of tensorPlaces(base.layout)) {
      expect(merge(place)).toEqual(base.weights.subarray(place.offset, place.offset + place.size));
    }
  });

  it.each([
    [
      { targetModules: ['q_proj', 'query'] },
      /target module query is not in the model; its linear layers are q_proj, k_/,
    ],
    [{ targetModules: [] }, /no target module is given/],
    [{ targetModules: ['lm_head'] }, /lm_head is not in/],
    [{ rank: 0 }, /rank of a LoRA adapter is 0/],
    [{ rank: 1.5 }, /rank of a LoRA adapter is 1.5/],
    [{ alpha: 0 }, /alpha of a LoRA adapter is 0/],
  ])('refuses %j', (fields, message) => {
    const lora = { rank: 4, alpha: 8, targetModules: 'all-linear' as const, ...fields };
    expect(() => adapterOf(base.layout, lora)).toThrow(message);
  });
});
