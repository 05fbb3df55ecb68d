import type { Learner } from '../engines/contracts.ts';

/** A moving average of the weights. */
export interface AverageOptions {
  /** Share of itself that it keeps at each update, in [0, 1); 0.992 when not given. */
  readonly beta?: number | undefined;
  /** Directory for the averaged model, written after the last step. */
  readonly output?: string | undefined;
}

/** @throws Error when the engine keeps no average, or a number is out of range. */
export function checkAverage(learner: Learner, { beta = 0.992 }: AverageOptions): void {
  if (!(beta >= 0 && beta < 1)) throw new Error(`train.ema_beta must be in [0, 1), got ${beta}`);
  if (learner.average === undefined) {
    throw new Error('this engine keeps no average of its weights: leave train.enable_ema out');
  }
}

/** Runs `call` while the learner's weights are the average. */
export async function onAverage<T>(learner: Learner, call: () => Promise<T>): Promise<T> {
  const { average } = learner;
  if (average === undefined) throw new Error('there is no average of the weights: set train.enable_ema');
  await average.swap();
  try {
    return await call();
  } finally {
    await average.swap();
  }
}
