import type { Learner } from '../engines/contracts.ts';

/** How the reference follows the policy. */
export interface ReferenceUpdate {
  /** Steps between two updates of the reference; 1 when not given. */
  readonly every?: number | undefined;
  /** In [0, 1): reference ← beta · reference + (1 − beta) · policy; 0, a copy of the policy, when not given. */
  readonly beta?: number | undefined;
}

/** Moves the reference after `step`, if that is due. */
export async function followPolicy(learner: Learner, update: ReferenceUpdate | undefined, step: number): Promise<void> {
  if (update === undefined) return;
  const { every = 1, beta = 0 } = update;
  if (step % every === 0) await learner.updateReference({ beta });
}

/** @throws Error for numbers out of range. */
export function checkReferenceUpdate({ every = 1, beta = 0 }: ReferenceUpdate): void {
  if (!(Number.isInteger(every) && every >= 1))
    throw new Error(`ref.update_steps must be a whole number ≥ 1, got ${every}`);
  if (!(beta >= 0 && beta < 1)) throw new Error(`ref.ema_beta must be in [0, 1), got ${beta}`);
}
