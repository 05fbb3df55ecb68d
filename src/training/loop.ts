import { type Algorithm, computeAdvantages } from '../algorithms/algorithm.ts';
import { type Curation, curate } from '../algorithms/curation.ts';
import type { KlController } from '../algorithms/kl.ts';
import type { Learner } from '../engines/contracts.ts';
import type { Episode } from '../episode/episode.ts';
import { messageOf } from '../episode/failure.ts';
import { FailureRateError } from '../rollout/failures.ts';
import type { Pipeline, RolloutBatch } from '../rollout/pipeline.ts';
import { seedOf } from '../rollout/seeds.ts';
import type { Progress } from './checkpointer.ts';
import { type CriticTrainer, foresight } from './critic.ts';
import type { Evaluation } from './evaluate.ts';
import { prepare } from './prepare.ts';
import { weighted } from './stale-weights.ts';
import { type UpdateOptions, update } from './update.ts';

/** One step of training as it is handed to the user. */
export interface TrainStep {
  /** Steps done. 0 is the evaluation before training, given when there is one. */
  readonly index: number;
  /** Flat, slash-separated names (docs/metrics.md). */
  readonly metrics: Readonly<Record<string, number>>;
  /** Everything sampled for the step, failed episodes too; empty at index 0. */
  readonly episodes: readonly Episode[];
  /** Of the policy after the step, where one was due. */
  readonly evaluation?: Evaluation;
}

/** Everything the loop needs; train.ts puts it together. */
export interface LoopParts {
  readonly pipeline: Pipeline;
  readonly learner: Learner;
  readonly algorithm: Algorithm;
  /** Present when the algorithm has a KL term. */
  readonly kl?: KlController | undefined;
  /** Present when the algorithm needs one. */
  readonly critic?: CriticTrainer | undefined;
  /** What is done to episodes before they are compared. */
  readonly curation: Curation;
  /** One training row for each turn. */
  readonly turnRows: boolean;
  /** Moves the reference after a step, if that is due. */
  readonly follow: (step: number) => Promise<void>;
  readonly update: Pick<UpdateOptions, 'batchSize' | 'epochs' | 'temperature' | 'learningRate' | 'averageBeta'>;
  readonly seed: number;
  readonly start: Progress;
  /** Steps of the whole run. */
  readonly steps: number;
  /** Evaluates the policy if that is due after so many steps. */
  readonly evaluate: (step: number) => Promise<Evaluation | undefined>;
  /** Logs a step and writes a checkpoint if that is due. */
  readonly record: (step: TrainStep, progress: Progress) => Promise<void>;
  /** Called when an update could not be made: keeps the weights from before it and says where. Never rejects. */
  readonly rescue: () => Promise<string>;
  /** Aborts: the step that is under way becomes the last. */
  readonly stop: AbortSignal;
}

/** The loop: sample, prepare, assign credit, update, publish; then evaluate, log and save what is due. */
export async function* loop(parts: LoopParts): AsyncGenerator<TrainStep> {
  const { pipeline, learner, steps, stop } = parts;
  let progress = parts.start;
  const evaluation = progress.step === 0 ? await parts.evaluate(0) : undefined;
  if (evaluation !== undefined) yield* given({ index: 0, metrics: evaluation.metrics, episodes: [], evaluation });
  if (progress.step >= steps || stop.aborted) return;

  let began = performance.now();
  const where = () => `training stopped at step ${progress.step + 1}`;
  for await (const batch of naming(pipeline, where)) {
    const index = progress.step + 1;
    const learned = await learn(batch, index, progress.updates, parts);
    await parts.follow(index);
    const publishing = performance.now();
    await pipeline.publish(learner);
    const ended = performance.now();
    progress = { step: index, updates: progress.updates + learned.updates };

    const timing = { 'timing/broadcast': seconds(publishing, ended), 'timing/step_total': seconds(began, ended) };
    const done = { index, metrics: { ...batch.metrics, ...learned.metrics, ...timing }, episodes: batch.episodes };
    yield* given(await evaluated(done));
    if (index >= steps || stop.aborted) return;
    began = performance.now();
  }

  /** The step with its evaluation; one that fails does not lose the step. */
  async function evaluated(step: TrainStep): Promise<TrainStep> {
    try {
      const evaluation = await parts.evaluate(step.index);
      return evaluation ? { ...step, metrics: { ...step.metrics, ...evaluation.metrics }, evaluation } : step;
    } catch (error) {
      await parts.record(step, progress);
      throw error;
    }
  }

  async function* given(step: TrainStep): AsyncGenerator<TrainStep> {
    await parts.record(step, progress);
    yield step;
  }
}

/** The batches; that too many episodes failed is thrown with the step in front. */
async function* naming(batches: AsyncIterable<RolloutBatch>, where: () => string): AsyncGenerator<RolloutBatch> {
  try {
    yield* batches;
  } catch (error) {
    if (!(error instanceof FailureRateError)) throw error;
    throw new FailureRateError(`${where()}: ${error.message}`, error, { cause: error });
  }
}

/** Improves the policy by one batch. A batch without anything to train on changes nothing. */
async function learn(
  batch: RolloutBatch,
  step: number,
  updates: number,
  parts: LoopParts,
): Promise<{ readonly updates: number; readonly metrics: Readonly<Record<string, number>> }> {
  const { learner, algorithm, kl, critic, curation, turnRows } = parts;
  const began = performance.now();
  const { needs, estimator } = algorithm;
  const { groups, masked, metrics: curated } = curate(batch.groups, curation, estimator.minimumGroup);
  if (groups.length === 0) return { updates: 0, metrics: named(curated) };
  const { temperature } = parts.update;
  const { experience, metrics: prepared } = await prepare(groups, learner, {
    needs,
    temperature,
    beta: kl?.value,
    critic: critic?.critic,
    masked,
    turnRows,
  });
  const { metrics: credited, ...estimated } = computeAdvantages(algorithm, experience);
  const credit = { ...estimated, advantages: weighted(estimated.advantages, experience.trajectories, groups) };
  const foreseen = credit.returns ? foresight(experience, credit.returns) : {};
  const prepareEnded = performance.now();
  try {
    const seed = seedOf(parts.seed, 'update', step);
    const frozen = critic !== undefined && step <= critic.freezingSteps;
    const updated = await update(learner, algorithm, experience, credit, {
      ...parts.update,
      updates,
      seed,
      critic,
      frozen,
    });
    const metrics: Record<string, number> = {
      'timing/make_experience': seconds(began, prepareEnded),
      'timing/ppo_train': seconds(prepareEnded, performance.now()),
      ...named({ ...curated, ...prepared, ...credited, ...foreseen, ...updated.metrics }),
    };
    if (kl !== undefined) {
      metrics['train/kl_coef'] = kl.value;
      const measured = metrics['train/kl'];
      // Without an update a divergence in the loss was not measured.
      if (measured !== undefined) {
        kl.update(measured, new Set(experience.trajectories.map(({ episode }) => episode)).size);
      }
    }
    return { updates: updated.updates, metrics };
  } catch (error) {
    throw new Error(`training stopped at step ${step}: ${messageOf(error)}. ${await parts.rescue()}`, { cause: error });
  }
}

function named(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`train/${name}`, value]));
}

function seconds(from: number, to: number): number {
  return (to - from) / 1000;
}
