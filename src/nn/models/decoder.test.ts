import { describe, expect, it } from 'vitest';
import { GOLDEN_MODELS, type Golden, golden } from '../../../tests/support/goldens.ts';
import { tokenMean } from '../../algorithms/aggregate.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import { policyLoss } from '../../algorithms/losses/policy.ts';
import { ppoObjective } from '../../algorithms/losses/ppo.ts';
import type { Loss } from '../../algorithms/ops.ts';
import { DEFAULT_SAMPLING, type Generation, type LearnerBatch, type LearnerSequence } from '../../engines/contracts.ts';
import { packBatch } from '../../engines/onnx/batch.ts';
import { OnnxLearnerCore } from '../../engines/onnx/learner.ts';
import { record } from '../../engines/onnx/loss-program.ts';
import { Model } from '../../engines/onnx/model.ts';
import { PolicyGraphs } from '../../engines/onnx/policy-graphs.ts';
import { packedPositions } from '../../engines/onnx/positions.ts';
import { OnnxSamplerCore } from '../../engines/onnx/sampler.ts';
import { Session } from '../../engines/onnx/session.ts';
import { emit } from '../onnx.ts';
import { trainingForm } from './decoder.ts';
import { weightInputs } from './weights.ts';

/** Absolute, on logits and log-probabilities: the bar against Transformers. */
const LOGIT_TOLERANCE = 1e-4;
/** On gradients, of the largest element of the checkpoint tensor. */
const GRADIENT_TOLERANCE = 1e-4;
/** Absolute, on log-probabilities: between the cached form and whole sequences, float32 sums in another order. */
const FORM_TOLERANCE = 1e-5;

function sequence(tokens: readonly number[], predict: readonly number[]): LearnerSequence {
  return { tokens: Int32Array.from(tokens), predict: Uint8Array.from(predict) };
}

/** Every token but the first is predicted. */
function languageModelling({ sequences }: Golden): LearnerBatch {
  return {
    temperature: 1,
    sequences: sequences.map(tokens =>
      sequence(
        tokens,
        tokens.map((_, t) => (t > 0 ? 1 : 0)),
      ),
    ),
  };
}

function policyTokens({ sequences, predict, temperature }: Golden): LearnerBatch {
  return { temperature, sequences: sequences.map((tokens, i) => sequence(tokens, predict[i]!)) };
}

function furthest(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  return Array.from(actual).reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
}

const largest = (values: Float32Array) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

function learnerOf(golden: Golden, maxTokens: number): { model: Model; learner: OnnxLearnerCore } {
  const model = new Model(golden.directory);
  const adam = { betas: [0.9, 0.95] as const, eps: 1e-8, weightDecay: 0, maxNorm: 1 };
  return { model, learner: new OnnxLearnerCore(model, { threads: 1, maxTokens, ...adam }) };
}

describe.each(GOLDEN_MODELS)('%s', name => {
  const data = golden(name);
  const tensor = (key: string) => data.tensors.get(key)!;
  const tensors = (prefix: string) => data.sequences.map((_, i) => tensor(`${prefix}.${i}`));

  it("has Transformers' logits, of sequences packed together", async () => {
    const model = new Model(data.directory);
    const { logits } = trainingForm(model.config, weightInputs(model.layout));
    const session = await Session.create(emit({ logits }), { threads: 1 });
    // The last token is only ever predicted: one more lets the logits after it be seen.
    const batch = data.sequences.map(tokens => sequence([...tokens, 0], [0, ...tokens.map(() => 1)]));
    const packed = packBatch(batch, model.config);
    const outputs = await session.run(
      {
        ...model.views(model.weights),
        ...packed.feeds,
        ...packedPositions(model, packed.rows),
      },
      packed.symbols,
    );
    await session.release();
    const expected = tensors('logits').flatMap(values => [...values]);
    expect(furthest(outputs.logits as Float32Array, expected)).toBeLessThan(LOGIT_TOLERANCE);
  });

  it("has Transformers' log-probabilities when decoding over a cache", async () => {
    const model = new Model(data.directory);
    const graphs = new PolicyGraphs(model, { threads: 1 });
    const tokens = Int32Array.from(data.sequences.at(-1)!);
    const expected = tensor(`logits.${data.sequences.length - 1}`);
    const cache = graphs.newCache();
    cache.addRow();
    // A prompt in chunks of 1, 5 and 4 tokens, then one token at a time.
    cache.reserveLength(tokens.length);
    let done = 0;
    for (const chunk of [1, 5, 4]) {
      done += chunk;
      await graphs.prefill(cache, [tokens.subarray(0, done)], { first: 0, chunk });
    }
    let worst = 0;
    for (const [position, token] of [...tokens].entries()) {
      if (position < done) continue;
      const step = { tokens: [token], temperatures: [0], uniforms: [0], distributions: true };
      const result = await graphs.decode(cache, step);
      const logits = expected.subarray(position * model.config.vocabSize, (position + 1) * model.config.vocabSize);
      const drawn = logits.indexOf(Math.max(...logits));
      expect(Number(result.tokens[0])).toBe(drawn);
      worst = Math.max(worst, furthest(result.distribution(0), logSoftmax(logits)));
      worst = Math.max(worst, Math.abs(result.logprobs[0]! - logSoftmax(logits)[drawn]!));
    }
    await graphs.close();
    expect(worst).toBeLessThan(LOGIT_TOLERANCE);
  });

  it('samples from a ragged batch over caches what it computes of whole sequences', async () => {
    const { model, learner } = learnerOf(data, 4096);
    const samples: LearnerSequence[] = [];
    const expected: Float32Array[] = [];
    const prompts = [1, 2, 5, 9, 14, 17].map(length => data.sequences.at(-1)!.slice(0, length));
    const events = {
      token: () => undefined,
      finished: (id: number, { tokens, logprobs }: Generation) => {
        const prompt = prompts[id]!;
        samples.push(sequence([...prompt, ...tokens], [...prompt.map(() => 0), ...tokens.map(() => 1)]));
        expected.push(logprobs);
      },
    };
    // Few rows and short chunks: prompts are cut, and rows of all lengths decode side by side.
    const options = { threads: 1, maxRows: 4, prefillTokens: 7, prefixCacheBytes: 1 << 16 };
    const sampler = new OnnxSamplerCore(model, options, events);
    const params = { ...DEFAULT_SAMPLING, maxTokens: 20 };
    sampler.submit(
      prompts.map((prompt, id) => ({
        id,
        tokens: Int32Array.from(prompt),
        params,
        seed: id,
        answered: 0,
        streaming: false,
      })),
    );
    while (sampler.busy) await sampler.step();
    await sampler.close();
    expect(samples).toHaveLength(prompts.length);
    const { logprobs } = await learner.forward({ temperature: 1, sequences: samples });
    await learner.close();
    for (const [i, values] of expected.entries()) expect(furthest(logprobs[i]!, values)).toBeLessThan(FORM_TOLERANCE);
  });

  // All sequences in one micro-batch, and nearly every sequence in its own.
  it.each([4096, 20])("has PyTorch's log-probabilities and entropies (micro-batches of %d tokens)", async maxTokens => {
    const { learner } = learnerOf(data, maxTokens);
    const { logprobs, entropy } = await learner.forward(policyTokens(data));
    await learner.close();
    for (const [i, expected] of tensors('logprobs').entries()) {
      expect(furthest(logprobs[i]!, expected)).toBeLessThan(LOGIT_TOLERANCE);
      expect(furthest(entropy[i]!, tensor(`entropy.${i}`))).toBeLessThan(LOGIT_TOLERANCE);
    }
  });

  describe.each([4096, 20])('in micro-batches of %d tokens', maxTokens => {
    const gradientErrors = async (
      kind: 'lm' | 'ppo',
      loss: Loss,
      batch: LearnerBatch,
      inputs: Record<string, Float32Array[]>,
    ) => {
      const { model, learner } = learnerOf(data, maxTokens);
      const result = await learner.forwardBackward({ ...batch, inputs }, record(loss));
      const gradient = learner.gradient();
      await learner.close();
      // A mean of about a hundred float32 terms.
      expect(result.loss).toBeCloseTo(data[`${kind}_loss`], 5);
      const errors: Record<string, number> = {};
      for (const { name, parts, size, shape } of model.layout) {
        let offset = 0;
        for (const { tensor: part, rows } of parts) {
          const count = (size / shape[0]!) * rows;
          const expected = tensor(`${kind}.grad.${part}`);
          errors[part] = furthest(gradient[name]!.subarray(offset, offset + count), expected) / largest(expected);
          offset += count;
        }
        expect(offset).toBe(size);
      }
      expect(Object.keys(errors)).toHaveLength(
        [...data.tensors.keys()].filter(k => k.startsWith(`${kind}.grad`)).length,
      );
      return Object.entries(errors).filter(([, error]) => !(error < GRADIENT_TOLERANCE));
    };
    const counts = (batch: LearnerBatch) =>
      batch.sequences.map(({ predict }) => predict.reduce((sum, mark) => sum + mark, 0));

    it("has PyTorch's gradient of the language-model loss for every tensor", async () => {
      const batch = languageModelling(data);
      expect(await gradientErrors('lm', likelihoodLoss(), batch, { weights: tokenMean(counts(batch)) })).toEqual([]);
    });

    it("has PyTorch's gradient of the PPO loss for every tensor", async () => {
      const batch = policyTokens(data);
      const weights = tokenMean(counts(batch));
      const loss = policyLoss({ objective: ppoObjective({ clip: [data.clip, data.clip] }) });
      const inputs = { weights, share: weights, advantages: tensors('advantages'), old: tensors('old_logprobs') };
      expect(await gradientErrors('ppo', loss, batch, inputs)).toEqual([]);
    });
  });
});

function logSoftmax(logits: Float32Array): Float64Array {
  const values = Float64Array.from(logits);
  const total = Math.log(values.reduce((sum, value) => sum + Math.exp(value), 0));
  return values.map(value => value - total);
}
