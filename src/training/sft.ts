import { tokenMean } from '../algorithms/aggregate.ts';
import { likelihoodLoss } from '../algorithms/losses/likelihood.ts';
import type { Rows } from '../data/rows.ts';
import type { Learner, LearnerSequence } from '../engines/contracts.ts';
import { messageOf } from '../episode/failure.ts';
import { DataOrder } from '../rollout/order.ts';
import { Checkpointer, type CheckpointOptions } from './checkpointer.ts';
import { refuseNonFinite } from './non-finite.ts';
import { learningRates, type OptimizerOptions } from './optimizer.ts';

/** A demonstration: its sequences stay together in a batch (conversations.ts makes them). */
export type Demonstration = readonly LearnerSequence[];

export interface SftOptions {
  readonly learner: Learner;
  readonly examples: Rows<Demonstration>;
  /** Held out: evaluated before the first and after the last step. */
  readonly heldOut?: Rows<Demonstration> | undefined;
  /** Steps between two evaluations, beside those. */
  readonly evaluateEvery?: number | undefined;
  /** Steps, each of one batch and one update. */
  readonly steps: number;
  /** Examples per batch. */
  readonly batchSize: number;
  readonly optimizer?: Omit<OptimizerOptions, 'batchSize' | 'epochs'> | undefined;
  readonly seed: number;
  readonly checkpoints?: CheckpointOptions | undefined;
  /** Told of every step before its checkpoint is written. */
  readonly record?: ((step: SftStep) => void | Promise<void>) | undefined;
  /** Told about what does not stop the run; Node's process warnings when not given. */
  readonly log?: ((message: string) => void) | undefined;
  /** Ends the run after the step under way, with a checkpoint where there are any. */
  readonly stop?: AbortSignal | undefined;
}

export interface SftStep {
  /** Steps done. 0 is the evaluation before training, given when there is one. */
  readonly index: number;
  /** train/gpt_loss, train/lr, train/grad_norm, train/tokens, eval/gpt_loss, timing/step_total, timing/tokens_per_second. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Steps of so many passes over the examples, the last incomplete batch left out. */
export function sftSteps(examples: number, batchSize: number, epochs: number): number {
  return Math.max(1, Math.floor((examples * epochs) / batchSize));
}

/** Supervised fine-tuning: the mean negative log-likelihood of the predicted tokens of each batch is minimised. */
export async function* sft(options: SftOptions): AsyncGenerator<SftStep, undefined> {
  const { learner, examples, heldOut, evaluateEvery, steps, batchSize, seed, checkpoints, stop } = options;
  const { log = message => process.emitWarning(message) } = options;
  const order = new DataOrder(examples, seed);
  const checkpointer = checkpoints && new Checkpointer(checkpoints, { learner, data: order, seed, log });
  const learningRate = learningRates(options.optimizer ?? {}, steps);
  const evaluate = async (step: number): Promise<Record<string, number>> => {
    const due = step === 0 || step === steps || (evaluateEvery !== undefined && step % evaluateEvery === 0);
    return heldOut && due ? { 'eval/gpt_loss': await meanLoss(learner, heldOut, batchSize) } : {};
  };

  let { step } = (await checkpointer?.restore()) ?? { step: 0 };
  const before = step === 0 ? await evaluate(0) : {};
  if (Object.keys(before).length > 0) yield* given({ index: 0, metrics: before });
  while (step < steps && !stop?.aborted) {
    const began = performance.now();
    const batch = Array.from({ length: batchSize }, () => examples.at(order.next().row)!).flat();
    const learned = await learn(learner, batch, learningRate(step)).catch(async error => {
      const kept = (await checkpointer?.rescue()) ?? 'There is no checkpoint directory to keep the weights in';
      throw new Error(`training stopped at step ${step + 1}: ${messageOf(error)}. ${kept}`, { cause: error });
    });
    step += 1;
    const seconds = (performance.now() - began) / 1000;
    const timing = { 'timing/step_total': seconds, 'timing/tokens_per_second': learned['train/tokens'] / seconds };
    yield* given({ index: step, metrics: { ...learned, ...timing, ...(await evaluate(step)) } });
  }
  if (stop?.aborted && step > 0) await checkpointer?.save({ step, updates: step });

  async function* given(done: SftStep): AsyncGenerator<SftStep> {
    await options.record?.(done);
    await checkpointer?.after({ step: done.index, updates: done.index });
    yield done;
  }
}

const LOSS = likelihoodLoss();

/** One update on the token mean of a batch. */
async function learn(learner: Learner, sequences: readonly LearnerSequence[], lr: number) {
  const counts = sequences.map(predicted);
  const inputs = { weights: tokenMean(counts) };
  const metrics = await learner.forwardBackward({ sequences, temperature: 1, inputs }, LOSS);
  await refuseNonFinite(learner, metrics);
  const { gradNorm } = await learner.optimizerStep({ lr });
  return {
    'train/gpt_loss': metrics.gpt_loss!,
    'train/lr': lr,
    'train/grad_norm': gradNorm,
    'train/tokens': counts.reduce((sum, count) => sum + count, 0),
  };
}

/** Mean negative log-likelihood of the predicted tokens of all examples, every token counting the same. */
export async function meanLoss(learner: Learner, examples: Rows<Demonstration>, batchSize: number): Promise<number> {
  let sum = 0;
  let tokens = 0;
  for (let start = 0; start < examples.length; start += batchSize) {
    const sequences = range(examples, start, batchSize).flat();
    const { logprobs } = await learner.forward({ sequences, temperature: 1 });
    for (const row of logprobs) {
      tokens += row.length;
      for (const logprob of row) sum -= logprob;
    }
  }
  return sum / tokens;
}

function range<T>(rows: Rows<T>, start: number, count: number): T[] {
  const end = Math.min(start + count, rows.length);
  return Array.from({ length: end - start }, (_, i) => rows.at(start + i)!);
}

function predicted({ predict }: LearnerSequence): number {
  return predict.reduce((count, flag) => count + flag, 0);
}
