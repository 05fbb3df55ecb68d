import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
import { goldenModel, loraGolden, SCORE_MODELS, scoreGolden } from '../../../tests/support/goldens.ts';
import { policyLoss } from '../../algorithms/losses/policy.ts';
import { ppoObjective } from '../../algorithms/losses/ppo.ts';
import { valueLoss } from '../../algorithms/losses/value.ts';
import type { Loss } from '../../algorithms/ops.ts';
import type { LearnerSequence, LossBatch } from '../contracts.ts';
import { OnnxLearnerCore } from './learner.ts';
import { type LossProgram, record } from './loss-program.ts';
import { Model } from './model.ts';

/**
 * Of a tensor's largest element: float32 sums in another order. 1 in 1000 of 545 000 compared tensors was further off
 * than 3e-6, and the worst by 1.7e-5 (2.7e-5 in another search): as far as PyTorch's own float32 is from its float64
 * on that batch, which magnifies rounding.
 */
const TOLERANCE = 1e-4;
/**
 * Of the largest element of all gradients: where terms cancel, rounding is what is left. Equal tokens have equal values,
 * so that attention has nothing to choose between and the gradient of queries and keys is 0.
 */
const CANCELLED = 1e-6;

/**
 * Up to three groups, each a prompt with answers that begin alike or are the same, some of them cut off inside the
 * prompt; every sequence with marks of its own, in the shared part too.
 */
const token = fc.nat(19);
const part = (most: number) => fc.array(token, { maxLength: most });
const answer = fc.record({ turn: part(6), last: part(5), cut: fc.integer({ min: 2, max: 40 }), marks: fc.nat() });
const group = fc
  .record({
    prompt: fc.array(token, { minLength: 2, maxLength: 14 }),
    answers: fc.array(answer, { minLength: 1, maxLength: 5 }),
  })
  .map(({ prompt, answers }) =>
    answers.flatMap(({ last, cut, marks }, i): LearnerSequence[] => {
      const turn = answers[i % 2]!.turn;
      const tokens = Int32Array.from([...prompt, ...turn, ...last].slice(0, cut));
      const predict = Uint8Array.from(tokens, (_, t) => (t > 0 && (marks >> (t % 20)) & 1 ? 1 : 0));
      const sequence = { tokens, predict };
      return i % 3 === 2 ? [sequence, sequence] : [sequence];
    }),
  );
const batches = fc.array(group, { minLength: 1, maxLength: 3 }).map(groups => groups.flat());

const largest = (values: Float32Array) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

function closeTo(actual: Float32Array, expected: Float32Array, rounding: number, what: string): void {
  expect(actual.length).toBe(expected.length);
  const furthest = largest(actual.map((value, i) => value - expected[i]!));
  expect(furthest, what).toBeLessThanOrEqual(TOLERANCE * largest(expected) + rounding);
}

/** Shared and unshared, in one micro-batch and in several. */
function learners(open: () => Model): OnnxLearnerCore[] {
  return [
    { treePacking: false, maxTokens: 4096 },
    { treePacking: true, maxTokens: 4096 },
    { treePacking: true, maxTokens: 24 },
  ].map(options => new OnnxLearnerCore(open(), hostOptions('', { learner: options }).learner));
}

/** By name. */
type Tensors = Readonly<Record<string, Float32Array>>;

async function results(
  learner: OnnxLearnerCore,
  batch: LossBatch,
  program: LossProgram,
): Promise<{ predicted: Tensors; gradient: Tensors }> {
  learner.zeroGrad();
  const joined = (parts: readonly Float32Array[]) => Float32Array.from(parts.flatMap(each => [...each]));
  const predicted: Record<string, Float32Array> = {};
  if (program.values) predicted.values = joined(await learner.values(batch));
  else {
    const { logprobs, entropy } = await learner.forward(batch);
    Object.assign(predicted, { logprobs: joined(logprobs), entropy: joined(entropy) });
  }
  await learner.forwardBackward(batch, program);
  return { predicted, gradient: learner.gradient() };
}

async function sharingChangesNothing(open: () => Model, loss: Loss): Promise<void> {
  const all = learners(open);
  const program = record(loss);
  const check = async (sequences: LearnerSequence[]) => {
    const counts = sequences.map(({ predict }) => predict.filter(mark => mark === 1).length);
    const column = (scale: number) =>
      counts.map((count, s) => Float32Array.from({ length: count }, (_, i) => scale * Math.cos(s + i)));
    const batch = {
      temperature: 0.8,
      sequences,
      inputs: Object.fromEntries(loss.inputs.map((name, i) => [name, column(1 + i)])),
    };
    const { predicted, gradient } = await results(all[0]!, batch, program);
    const rounding = CANCELLED * Math.max(...Object.values(gradient).map(largest));
    for (const learner of all.slice(1)) {
      const shared = await results(learner, batch, program);
      for (const [name, values] of Object.entries(predicted)) closeTo(shared.predicted[name]!, values, 0, name);
      for (const [name, values] of Object.entries(gradient)) closeTo(shared.gradient[name]!, values, rounding, name);
    }
  };
  await fc.assert(fc.asyncProperty(batches, check), { numRuns: 12 });
  await Promise.all(all.map(learner => learner.close()));
}

const POLICY = policyLoss({ objective: ppoObjective({ clip: [0.2, 0.2] }) });

describe('a prefix that sequences share gives the same predictions and gradients', () => {
  // Global and sliding layers, capped scores, layers without positions, scaled positions, norms of heads, biases.
  it.each(['gemma2', 'mistral-window', 'qwen2-windows-yarn', 'smollm3', 'phi3', 'gemma3-bf16', 'qwen3-biases'])(
    'in %s',
    name => sharingChangesNothing(() => new Model(goldenModel(name)), POLICY),
  );

  it('to an adapter', () => {
    const { base, directory } = loraGolden('grouped-all');
    return sharingChangesNothing(() => new Model(base, undefined, undefined, { directory }), POLICY);
  });

  it.each(SCORE_MODELS)('to the value head of %s', name =>
    sharingChangesNothing(() => new Model(scoreGolden(name).directory), valueLoss({ clip: 0.5 })),
  );
});

it('has the same gradient, bit for bit, on one thread and on two', async () => {
  const prompt = Array.from({ length: 40 }, (_, t) => (7 * t + t * t) % 20);
  const sequences = Array.from({ length: 8 }, (_, n) => ({
    tokens: Int32Array.from([...prompt, ...Array.from({ length: 6 + n }, (_, t) => (n * t + 3) % 20)]),
    predict: Uint8Array.from({ length: 46 + n }, (_, t) => (t >= 40 ? 1 : 0)),
  }));
  const inputs = Object.fromEntries(
    POLICY.inputs.map(name => [name, sequences.map((_, n) => new Float32Array(6 + n).fill(-0.5))]),
  );
  const gradients = [];
  for (const threads of [1, 2, 2]) {
    const learner = new OnnxLearnerCore(
      new Model(goldenModel('gemma2')),
      hostOptions('', { learner: { threads } }).learner,
    );
    await learner.forwardBackward({ temperature: 1, sequences, inputs }, record(POLICY));
    gradients.push(learner.gradient());
    await learner.close();
  }
  for (const gradient of gradients.slice(1)) expect(gradient).toEqual(gradients[0]);
});
