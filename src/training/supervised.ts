import type { Rows } from '../data/rows.ts';
import type { Learner } from '../engines/contracts.ts';
import { messageOf } from '../episode/failure.ts';
import { DataOrder } from '../rollout/order.ts';
import { Checkpointer, type CheckpointOptions } from './checkpointer.ts';
import { learningRates, type OptimizerOptions } from './optimizer.ts';

/**
 * Training on examples that lie in a file: each step is one batch and one update. What an example is and what is
 * learned of it is the job's: demonstrations (sft.ts), rewards of pairs (reward-model.ts), preferences (dpo.ts).
 */

/** What is updated: a policy, or a model with a value head. */
export type Trainee = Pick<Learner, 'optimizerStep' | 'zeroGrad' | 'save' | 'load' | 'export'>;

export interface SupervisedOptions<E> {
  readonly examples: Rows<E>;
  /** Held out: evaluated before the first and after the last step. */
  readonly heldOut?: Rows<E> | undefined;
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
  readonly record?: ((step: SupervisedStep) => void | Promise<void>) | undefined;
  /** Told about what does not stop the run; Node's process warnings when not given. */
  readonly log?: ((message: string) => void) | undefined;
  /** Ends the run after the step under way, with a checkpoint where there are any. */
  readonly stop?: AbortSignal | undefined;
}

/** What a job adds to the loop. */
export interface SupervisedJob<E> {
  readonly trainee: Trainee;
  /** Accumulates the gradient of one batch. Metrics by their names without `train/`; `tokens` is among them. */
  learn(batch: readonly E[]): Promise<Readonly<Record<'tokens', number> & Record<string, number>>>;
  /** Metrics of examples that are not learned from, by their names without `eval/`. */
  evaluate(examples: Rows<E>): Promise<Readonly<Record<string, number>>>;
}

export interface SupervisedStep {
  /** Steps done. 0 is the evaluation before training, given when there is one. */
  readonly index: number;
  /** train/<of the job>, train/lr, train/grad_norm, eval/<of the job>, timing/step_total, timing/tokens_per_second. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Steps of so many passes over the examples, the last incomplete batch left out. */
export function supervisedSteps(examples: number, batchSize: number, epochs: number): number {
  return Math.max(1, Math.floor((examples * epochs) / batchSize));
}

/** Runs the job, step by step. */
export async function* supervised<E>(
  job: SupervisedJob<E>,
  options: SupervisedOptions<E>,
): AsyncGenerator<SupervisedStep, undefined> {
  const { trainee } = job;
  const { examples, heldOut, evaluateEvery, steps, batchSize, seed, checkpoints, stop } = options;
  const { log = message => process.emitWarning(message) } = options;
  const order = new DataOrder(examples, seed);
  const checkpointer = checkpoints && new Checkpointer(checkpoints, { learner: trainee, data: order, seed, log });
  const learningRate = learningRates(options.optimizer ?? {}, steps);
  const evaluate = async (step: number): Promise<Record<string, number>> => {
    const due = step === 0 || step === steps || (evaluateEvery !== undefined && step % evaluateEvery === 0);
    return heldOut && due ? named('eval', await job.evaluate(heldOut)) : {};
  };
  const update = async (batch: readonly E[], lr: number) => {
    const metrics = await job.learn(batch);
    const { gradNorm } = await trainee.optimizerStep({ lr });
    return { ...metrics, lr, grad_norm: gradNorm };
  };

  let { step } = (await checkpointer?.restore()) ?? { step: 0 };
  const before = step === 0 ? await evaluate(0) : {};
  if (Object.keys(before).length > 0) yield* given({ index: 0, metrics: before });
  while (step < steps && !stop?.aborted) {
    const began = performance.now();
    const batch = Array.from({ length: batchSize }, () => examples.at(order.next().row)!);
    const learned = await update(batch, learningRate(step)).catch(async error => {
      const kept = (await checkpointer?.rescue()) ?? 'There is no checkpoint directory to keep the weights in';
      throw new Error(`training stopped at step ${step + 1}: ${messageOf(error)}. ${kept}`, { cause: error });
    });
    step += 1;
    const seconds = (performance.now() - began) / 1000;
    const timing = { 'timing/step_total': seconds, 'timing/tokens_per_second': learned.tokens / seconds };
    yield* given({ index: step, metrics: { ...named('train', learned), ...timing, ...(await evaluate(step)) } });
  }
  if (stop?.aborted && step > 0) await checkpointer?.save({ step, updates: step });

  async function* given(done: SupervisedStep): AsyncGenerator<SupervisedStep> {
    await options.record?.(done);
    await checkpointer?.after({ step: done.index, updates: done.index });
    yield done;
  }
}

/** The examples in their order, so many at a time. */
export function* batches<E>(examples: Rows<E>, size: number): Generator<E[]> {
  for (let start = 0; start < examples.length; start += size) {
    const count = Math.min(size, examples.length - start);
    yield Array.from({ length: count }, (_, i) => examples.at(start + i)!);
  }
}

function named(group: string, metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`${group}/${name}`, value]));
}
