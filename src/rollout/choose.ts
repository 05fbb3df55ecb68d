import type { Learner, Sampler } from '../engines/contracts.ts';
import { type Admission, immediate, lockstep } from './admission.ts';
import { AsyncPipeline, checkedOverlap, type Overlap } from './async.ts';
import { continuing } from './continuing.ts';
import type { Sleep } from './overlap-options.ts';
import type { Pipeline } from './pipeline.ts';
import { type PipelineOptions, SyncPipeline } from './sync.ts';

/** Which pipeline feeds a run. */
export interface PipelineChoice {
  /** Sampling and learning overlap; without it they take turns. */
  readonly overlap?: Overlap | undefined;
  /** What rests while the other half works, where they take turns; the sampler when not given. */
  readonly sleep?: Partial<Sleep> | undefined;
}

/** The pipeline that was chosen. */
export function pipelineOf(options: PipelineOptions, learner: Learner, { overlap, sleep }: PipelineChoice): Pipeline {
  if (overlap) return new AsyncPipeline({ ...options, ...overlap });
  const sleepingLearner = sleep?.learner ? learner : undefined;
  return new SyncPipeline({ ...options, samplerSleeps: sleep?.sampler ?? true, sleepingLearner });
}

/** How requests reach the sampler. */
export function admissionOf(
  sampler: Sampler,
  { overlap, deterministic }: PipelineChoice & { readonly deterministic: boolean },
): Admission {
  const served = overlap?.partial === 'recompute' ? continuing(sampler) : sampler;
  return deterministic ? lockstep(served) : immediate(served);
}

/** What a pipeline needs of the rest of a run. */
export interface Surroundings {
  /** Groups per batch. */
  readonly groups: number;
  readonly deterministic: boolean;
  /** Groups are sampled in rounds, several for each that is missing. */
  readonly oversampling: boolean;
  /** The moving average of the weights is evaluated. */
  readonly evaluatesAverage: boolean;
}

/** @throws Error for what does not go together with an overlap, with the reason */
export function checkChoice({ overlap, sleep }: PipelineChoice, run: Surroundings): void {
  if (overlap === undefined) return;
  const { maxStaleness } = checkedOverlap(overlap, run.groups);
  if (sleep?.sampler || sleep?.learner) {
    throw new Error('nothing sleeps where sampling and learning overlap: leave out sleep, or the overlap');
  }
  if (run.oversampling) {
    throw new Error(
      'rollout.oversampling samples in rounds, and the async pipeline replaces each refused group at once: leave it out, or raise rollout.vllm_generate_batch_size',
    );
  }
  if (maxStaleness === 0) return;
  if (run.deterministic) {
    throw new Error(
      'train.full_determinism_enable cannot be kept where sampling and learning overlap: which weights sample a token depends on how long an update takes; leave it out, or set rollout.max_staleness 0',
    );
  }
  if (run.evaluatesAverage) {
    throw new Error(
      'eval.ema_enable lends the sampler other weights for an evaluation, and with train.async_enable it samples for training meanwhile: leave it out, and evaluate the averaged model afterwards',
    );
  }
}

/** @throws Error when the engine cannot do what was chosen */
export function checkEngine(
  { overlap, sleep }: PipelineChoice,
  engine: { readonly colocated?: boolean | undefined; readonly learner: Learner },
): void {
  if (overlap && overlap.maxStaleness !== 0 && engine.colocated) {
    throw new Error(
      'sampler and learner of this policy share one set of weights, so an update would change answers under way at a moment nobody chose: open it with separate threads (train.async_enable does, onnxPolicy takes separate)',
    );
  }
  if (sleep?.learner && engine.learner.offload === undefined) {
    throw new Error('ds.enable_sleep: the learner of this engine holds no optimizer state here; leave it out');
  }
}
