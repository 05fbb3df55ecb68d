/** Names of learning-rate schedules, as in Transformers; each is preceded by a linear warm-up. */
export const SCHEDULES = ['constant', 'linear', 'cosine', 'cosine_with_min_lr'] as const;
export type ScheduleName = (typeof SCHEDULES)[number];

export interface Schedule {
  readonly name: ScheduleName;
  /** Updates over which the learning rate rises from 0. */
  readonly warmupSteps: number;
  /** Updates of the whole run, the warm-up included. */
  readonly totalSteps: number;
  /** Where `cosine_with_min_lr` ends, as a share of the peak learning rate. */
  readonly minLrRatio: number;
}

/** Warm-up updates for a share of the run, rounded up. */
export function warmupSteps(ratio: number, totalSteps: number): number {
  return Math.ceil(ratio * totalSteps);
}

/**
 * The share of the peak learning rate for the update after `step` updates (0 for the first), as Transformers' schedules
 * with warm-up. With a warm-up the first update has rate 0. From `totalSteps` on it stays where the schedule ended.
 */
export function learningRateFactor(schedule: Schedule, step: number): number {
  const { name, warmupSteps: warmup, totalSteps, minLrRatio } = schedule;
  if (step < warmup) return step / warmup;
  if (name === 'constant') return 1;
  const span = Math.max(1, totalSteps - warmup);
  if (name === 'linear') return Math.max(0, totalSteps - step) / span;
  const cosine = 0.5 * (1 + Math.cos(Math.PI * Math.min(1, (step - warmup) / span)));
  return name === 'cosine' ? cosine : minLrRatio + (1 - minLrRatio) * cosine;
}
