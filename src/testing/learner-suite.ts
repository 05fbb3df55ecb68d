import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { evaluate } from '../algorithms/numeric.ts';
import type { Loss } from '../algorithms/ops.ts';
import type { Learner, LearnerSequence, LossBatch } from '../engines/contracts.ts';
import { type Check, checkUnless } from './check.ts';
import { unitLengths } from './units.ts';

export interface LearnerSuiteOptions {
  /** A learner at version 0 with the same weights each time; asked for once by each check. Who makes it closes it. */
  readonly make: () => Promise<Learner>;
  readonly vocabularySize: number;
  /** Opens an exported checkpoint. */
  readonly open?: (directory: string) => Promise<Learner>;
  /** The accumulated gradient, where the learner shows it: compared instead of its norm alone. */
  readonly gradient?: (learner: Learner) => Promise<Readonly<Record<string, Float32Array>>>;
  /** What the implementation cannot do, with the reason. */
  readonly without?: Readonly<Partial<Record<LearnerFeature, string>>>;
}

/** `average`: a reference that keeps a share of itself when it moves. `moving average`: one of the weights. */
export type LearnerFeature = 'export' | 'average' | 'moving average';

/** Advantage-weighted likelihood with an entropy term: it reads everything that a loss may read. */
const LOSS: Loss = {
  key: 'suite',
  inputs: ['advantages'],
  entropy: true,
  build(ops, { logprobs, entropy, inputs }) {
    const gain = ops.add(ops.mul(inputs.advantages!, logprobs), ops.mul(ops.constant(0.1), entropy!));
    return { loss: ops.neg(ops.sum(gain)), metrics: { entropy: ops.sum(entropy!), logprobs: ops.sum(logprobs) } };
  },
};

/** Compares the sequences of a pair: nothing but their difference counts. */
const PAIRED: Loss = {
  key: 'suite-pairs',
  inputs: ['direction'],
  entropy: false,
  build(ops, { logprobs, inputs }) {
    const difference = ops.sequenceSum(ops.mul(inputs.direction!, logprobs));
    return { loss: ops.sum(ops.softplus(ops.neg(difference))), metrics: { difference: ops.sum(difference) } };
  },
};

/** Of values computed in another grouping, relative to the largest of them: float32 sums in another order. */
const GROUPING_TOLERANCE = 1e-5;

/** What every Learner must keep. */
export function learnerSuite(options: LearnerSuiteOptions): Check[] {
  const { make, vocabularySize, without = {} } = options;
  const batch = batchOf(vocabularySize);
  const check = (name: string, run: (learner: Learner) => Promise<void>, needs: readonly LearnerFeature[] = []) =>
    checkUnless(
      needs.map(feature => without[feature]),
      name,
      async () => run(await make()),
    );
  const forward = async (learner: Learner) => (await learner.forward(batch)).logprobs;
  const update = async (learner: Learner, part: LossBatch = batch) => {
    const result = await learner.forwardBackward(part, LOSS);
    return { metrics: result, loss: result.loss!, ...(await learner.optimizerStep({ lr: 0.01 })) };
  };

  return [
    check('gives each predicted token a log-probability and an entropy, and no other', async learner => {
      const { logprobs, entropy } = await learner.forward(batch);
      for (const [i, { predict }] of batch.sequences.entries()) {
        const places = predict.reduce((count, mark) => count + mark, 0);
        assert.deepEqual([logprobs[i]!.length, entropy[i]!.length], [places, places]);
        for (const value of logprobs[i]!) assert.ok(Number.isFinite(value) && value <= 0, `log-prob ${value}`);
        for (const value of entropy[i]!) {
          assert.ok(value >= 0 && value <= Math.log(vocabularySize) + GROUPING_TOLERANCE, `entropy ${value}`);
        }
      }
    }),

    check('has log-probabilities and entropy of one distribution, at each temperature', async learner => {
      const sequences = Array.from({ length: vocabularySize }, (_, token) => ({
        tokens: Int32Array.of(1, 2, 0, token),
        predict: Uint8Array.of(0, 0, 0, 1),
      }));
      const plain = (await learner.forward({ temperature: 1, sequences })).logprobs.map(([value]) => value!);
      for (const temperature of [1, 0.5, 2]) {
        const { logprobs, entropy } = await learner.forward({ temperature, sequences });
        const total = Math.log(plain.reduce((sum, value) => sum + Math.exp(value / temperature), 0));
        const expected = plain.map(value => value / temperature - total);
        const expectedEntropy = expected.reduce((sum, value) => sum - Math.exp(value) * value, 0);
        for (const [token, value] of expected.entries()) {
          assertClose(logprobs[token]!, [value], 1, `log-prob of ${token}`);
          assertClose(entropy[token]!, [expectedEntropy], 1, 'entropy');
        }
      }
    }),

    check('gives a sequence the same values alone and in a batch', async learner => {
      const together = await forward(learner);
      for (const [i, sequence] of batch.sequences.entries()) {
        const { logprobs } = await learner.forward({ temperature: batch.temperature, sequences: [sequence] });
        assertClose(logprobs[0]!, together[i]!, 1, `sequence ${i}`);
      }
    }),

    check('gives the loss and metrics that the loss has on its log-probabilities', async learner => {
      const { logprobs, entropy } = await learner.forward(batch);
      const flat = (arrays: readonly Float32Array[]) => arrays.flatMap(array => [...array]);
      const expected = evaluate(LOSS, {
        sequences: logprobs.map(values => values.length),
        logprobs: flat(logprobs),
        entropy: flat(entropy),
        inputs: { advantages: flat(batch.inputs.advantages!) },
      });
      const { loss, ...metrics } = await learner.forwardBackward(batch, LOSS);
      await learner.zeroGrad();
      assert.deepEqual(Object.keys(metrics).sort(), Object.keys(expected.metrics).sort());
      const scale = Math.max(1, Math.abs(expected.metrics.logprobs!));
      assertClose([loss!], [expected.loss], scale, 'loss');
      for (const [name, value] of Object.entries(metrics)) assertClose([value], [expected.metrics[name]!], scale, name);
    }),

    check('accumulates the same gradient however a batch is split into calls', async learner => {
      const { gradient = async (): Promise<Readonly<Record<string, Float32Array>>> => ({}) } = options;
      const accumulate = async (parts: readonly LossBatch[]) => {
        await learner.zeroGrad();
        let loss = 0;
        for (const part of parts) loss += (await learner.forwardBackward(part, LOSS)).loss!;
        return { loss, gradient: await gradient(learner) };
      };
      const single = batch.sequences.map((_, i) => slice(batch, i, i + 1));
      const whole = await accumulate([batch]);
      for (const parts of [[slice(batch, 0, 2), slice(batch, 2, 99)], single, single.toReversed()]) {
        const split = await accumulate(parts);
        assertClose([split.loss], [whole.loss], Math.max(1, Math.abs(whole.loss)), 'loss');
        for (const [name, values] of Object.entries(whole.gradient)) {
          assertClose(split.gradient[name]!, values, largest(values), name);
        }
      }
      // The norm is the one thing that every learner tells.
      const { gradNorm } = await learner.optimizerStep({ lr: 0 });
      await learner.forwardBackward(batch, LOSS);
      assertClose([(await learner.optimizerStep({ lr: 0 })).gradNorm], [gradNorm], gradNorm, 'gradient norm');
    }),

    check('compares sequences that belong together, and tears none of them apart', async learner => {
      const even = slice(batch, 0, batch.sequences.length - (batch.sequences.length % 2));
      const { logprobs } = await learner.forward(even);
      const direction = logprobs.map((values, i) => new Float32Array(values.length).fill(i % 2 === 0 ? 1 : -1));
      const pairs = { ...even, together: 2, inputs: { direction } };
      const flat = (arrays: readonly Float32Array[]) => arrays.flatMap(array => [...array]);
      const expected = evaluate(PAIRED, {
        sequences: unitLengths(logprobs, 2),
        logprobs: flat(logprobs),
        inputs: { direction: flat(direction) },
      });
      const { loss, difference } = await learner.forwardBackward(pairs, PAIRED);
      await learner.zeroGrad();
      assertClose([loss!], [expected.loss], Math.abs(expected.loss), 'loss');
      assertClose([difference!], [expected.metrics.difference!], Math.abs(expected.loss), 'difference');
      await assert.rejects(
        learner.forwardBackward({ ...pairs, together: even.sequences.length + 1 }, PAIRED),
        /together must be/,
      );
    }),

    check('carries out calls in the order in which they were made', async learner => {
      const calls = [
        learner.forwardBackward(slice(batch, 0, 2), LOSS),
        learner.forwardBackward(slice(batch, 2, 99), LOSS),
        learner.optimizerStep({ lr: 0 }),
        learner.forwardBackward(batch, LOSS),
        learner.optimizerStep({ lr: 0 }),
      ] as const;
      const [, , split, , whole] = await Promise.all(calls);
      assertClose([split.gradNorm], [whole.gradNorm], whole.gradNorm, 'gradient norm');
      assert.equal(learner.version, 2);
    }),

    check('lowers the loss, counts its updates and keeps the reference', async learner => {
      const reference = await learner.forward(batch, { weights: 'reference' });
      assert.deepEqual(reference.logprobs, await forward(learner));
      const losses: number[] = [];
      for (let step = 0; step < 4; step++) {
        const { loss, gradNorm, lr } = await update(learner);
        losses.push(loss);
        assert.ok(gradNorm > 0 && lr === 0.01);
        assert.equal(learner.version, step + 1);
      }
      for (const [i, loss] of losses.slice(1).entries()) assert.ok(loss < losses[i]!, `loss rose: ${losses}`);
      assert.deepEqual(await learner.forward(batch, { weights: 'reference' }), reference);
    }),

    check('moves the reference as far as it is told, and keeps it with the state', async learner => {
      const reference = async () => (await learner.forward(batch, { weights: 'reference' })).logprobs;
      const first = await reference();
      await update(learner);
      await learner.updateReference({ beta: 1 });
      assert.deepEqual(await reference(), first);
      for (const beta of [-0.1, 1.1, Number.NaN]) await assert.rejects(learner.updateReference({ beta }), /beta/);
      await learner.updateReference({ beta: 0 });
      const moved = await reference();
      assert.deepEqual(moved, await forward(learner));
      assert.notDeepEqual(moved, first);
      await withDirectory(async directory => {
        await learner.save(directory);
        await update(learner);
        await learner.updateReference({ beta: 0 });
        assert.notDeepEqual(await reference(), moved);
        await learner.load(directory);
        assert.deepEqual(await reference(), moved);
      });
    }),

    check(
      'moves the reference a part of the way',
      async learner => {
        const reference = async () => (await learner.forward(batch, { weights: 'reference' })).logprobs;
        const first = await reference();
        await update(learner);
        await learner.updateReference({ beta: 0.5 });
        assert.notDeepEqual(await reference(), first);
        assert.notDeepEqual(await reference(), await forward(learner));
      },
      ['average'],
    ),

    check(
      'averages its weights, shows the average when asked to, and keeps it with the state',
      async learner => {
        const { average } = learner;
        assert.ok(average, 'a learner without an average says so in `without`');
        const averaged = async () => {
          await average.swap();
          const values = await forward(learner);
          await average.swap();
          return values;
        };
        const first = await forward(learner);
        assert.deepEqual(await averaged(), first);
        await update(learner);
        const policy = await forward(learner);
        assert.deepEqual(await averaged(), first);
        for (const beta of [-0.1, 1, Number.NaN]) await assert.rejects(average.update({ beta }), /beta/);
        await average.update({ beta: 0.5 });
        const half = await averaged();
        assert.notDeepEqual(half, first);
        assert.notDeepEqual(half, policy);
        await average.update({ beta: 0 });
        assert.deepEqual(await averaged(), policy);
        assert.deepEqual(await forward(learner), policy);
        await withDirectory(async directory => {
          await learner.save(directory);
          await update(learner);
          await average.update({ beta: 0 });
          await learner.load(directory);
          assert.deepEqual([await averaged(), await forward(learner)], [policy, policy]);
        });
      },
      ['moving average'],
    ),

    check('refuses an update without a gradient', async learner => {
      await assert.rejects(learner.optimizerStep({ lr: 0.01 }), /needs a gradient/);
      await learner.forwardBackward(batch, LOSS);
      await learner.zeroGrad();
      await assert.rejects(learner.optimizerStep({ lr: 0.01 }), /needs a gradient/);
      assert.equal(learner.version, 0);
    }),

    check('forgets the gradient with zeroGrad', async learner => {
      await learner.forwardBackward(slice(batch, 0, 1), LOSS);
      const norms: number[] = [];
      for (let step = 0; step < 2; step++) {
        await learner.zeroGrad();
        await learner.forwardBackward(batch, LOSS);
        norms.push((await learner.optimizerStep({ lr: 0 })).gradNorm);
      }
      assert.equal(norms[0], norms[1]);
    }),

    check('refuses a gradient or a learning rate that is not finite, and keeps its weights', async learner => {
      const before = await forward(learner);
      for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
        const advantages = batch.inputs.advantages!.map((values, i) => (i === 1 ? values.map(() => bad) : values));
        await learner.forwardBackward({ ...batch, inputs: { advantages } }, LOSS);
        await assert.rejects(learner.optimizerStep({ lr: 0.01 }), /gradient norm is (NaN|Infinity)/);
      }
      await learner.forwardBackward(batch, LOSS);
      await assert.rejects(learner.optimizerStep({ lr: Number.NaN }), /learning rate is NaN/);
      assert.deepEqual(await forward(learner), before);
      assert.equal(learner.version, 0);
      await learner.zeroGrad();
      await update(learner);
    }),

    check('refuses batches that make no sense, and they leave no gradient', async learner => {
      const [first, ...others] = batch.sequences as [LearnerSequence, ...LearnerSequence[]];
      const wrong = (sequence: LearnerSequence) => ({ ...batch, sequences: [sequence, ...others] });
      const inputs = (advantages: readonly Float32Array[]) => ({ ...batch, inputs: { advantages } });
      const refused: [LossBatch, RegExp][] = [
        [wrong({ ...first, predict: first.predict.map((mark, t) => (t === 0 ? 1 : mark)) }), /first token/],
        [{ ...batch, inputs: {} }, /advantages/],
        [inputs(batch.inputs.advantages!.slice(1)), /advantages/],
        [inputs(batch.inputs.advantages!.map(values => Float32Array.of(...values, 1))), /advantages/],
      ];
      for (const [bad, message] of refused) await assert.rejects(learner.forwardBackward(bad, LOSS), message);
      await assert.rejects(learner.optimizerStep({ lr: 0.01 }), /needs a gradient/);
    }),

    check('goes on from what it saved exactly as it would have', async learner => {
      await withDirectory(async directory => {
        await update(learner, slice(batch, 0, 2));
        await learner.save(directory);
        const steps = async () => [await update(learner), await update(learner), await forward(learner)];
        const first = await steps();
        // A gradient from before belongs to other weights.
        await learner.forwardBackward(batch, LOSS);
        await learner.load(directory);
        assert.equal(learner.version, 1);
        assert.deepEqual(await steps(), first);
        await assert.rejects(learner.load(join(directory, 'missing')), /missing/);
        assert.equal(learner.version, 3);
      });
    }),

    check(
      'writes a checkpoint that opens with the same log-probabilities',
      async learner => {
        assert.ok(options.open, 'the suite needs `open` to check exports');
        await update(learner);
        await withDirectory(async directory => {
          const target = join(directory, 'model');
          await learner.export(target);
          const opened = await options.open!(target);
          try {
            assert.deepEqual(await forward(opened), await forward(learner));
          } finally {
            await opened.close();
          }
        });
      },
      ['export'],
    ),
  ];
}

/** Ragged sequences, one of which predicts nothing, and one value for each predicted token. */
function batchOf(vocabularySize: number): LossBatch {
  const sequences = [2, 9, 5, 1, 7, 12].map((length, n) => ({
    tokens: Int32Array.from({ length }, (_, t) => (7 * n + 5 * t + t * t) % vocabularySize),
    predict: Uint8Array.from({ length }, (_, t) => (t > 0 && n !== 4 && (t + n) % 3 !== 0 ? 1 : 0)),
  }));
  const advantages = sequences.map(({ predict }, n) =>
    Float32Array.from(
      predict.filter(mark => mark === 1),
      (_, p) => Math.sin(3 * n + p) + 0.5,
    ),
  );
  return { temperature: 0.8, sequences, inputs: { advantages } };
}

function slice(batch: LossBatch, from: number, to: number): LossBatch {
  const inputs = Object.entries(batch.inputs).map(([name, arrays]) => [name, arrays.slice(from, to)] as const);
  return { ...batch, sequences: batch.sequences.slice(from, to), inputs: Object.fromEntries(inputs) };
}

function largest(values: Float32Array): number {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

function assertClose(actual: ArrayLike<number>, expected: ArrayLike<number>, scale: number, what: string): void {
  assert.equal(actual.length, expected.length, what);
  for (let i = 0; i < expected.length; i++) {
    const error = Math.abs(actual[i]! - expected[i]!);
    assert.ok(error <= GROUPING_TOLERANCE * scale, `${what}: ${actual[i]} at ${i}, expected ${expected[i]}`);
  }
}

async function withDirectory(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'learner-suite-'));
  try {
    await run(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}
