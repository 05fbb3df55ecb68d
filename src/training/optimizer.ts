import { updatesPerPass } from './mini-batches.ts';
import { learningRateFactor, type ScheduleName, warmupSteps } from './schedule.ts';

export interface OptimizerOptions {
  /** Peak learning rate; 1e-6 when not given. */
  readonly learningRate?: number | undefined;
  /** 'constant' when not given. */
  readonly schedule?: ScheduleName | undefined;
  /** Share of the run's updates over which the rate rises from 0; 0 when not given. */
  readonly warmupRatio?: number | undefined;
  /** Where 'cosine_with_min_lr' ends, as a share of the peak; 0.1 when not given. */
  readonly minLrRatio?: number | undefined;
  /** Episodes per update; all of a step when not given. */
  readonly batchSize?: number | undefined;
  /** Passes over the episodes of a step; 1 when not given. */
  readonly epochs?: number | undefined;
}

/** Learning rate of the n-th update (from 0) of a run with so many updates. */
export function learningRates(options: OptimizerOptions, totalUpdates: number): (update: number) => number {
  const { learningRate = 1e-6, schedule = 'constant', warmupRatio = 0, minLrRatio = 0.1 } = options;
  const shape = {
    name: schedule,
    warmupSteps: warmupSteps(warmupRatio, totalUpdates),
    totalSteps: totalUpdates,
    minLrRatio,
  };
  return update => learningRate * learningRateFactor(shape, update);
}

/** Optimizer updates of a run in which no episode fails. */
export function totalUpdates(
  { batchSize, epochs = 1 }: OptimizerOptions,
  run: { readonly steps: number; readonly episodesPerStep: number },
): number {
  return run.steps * epochs * updatesPerPass(run.episodesPerStep, batchSize);
}
