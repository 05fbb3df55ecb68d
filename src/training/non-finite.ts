import type { Learner } from '../engines/contracts.ts';

/** Forgets the gradient and throws when a metric of a loss, the loss among them, is not a finite number. */
export async function refuseNonFinite(
  learner: Pick<Learner, 'zeroGrad'>,
  metrics: Readonly<Record<string, number>>,
): Promise<void> {
  const bad = Object.entries(metrics).find(([, value]) => !Number.isFinite(value));
  if (bad === undefined) return;
  await learner.zeroGrad();
  throw new Error(`${bad[0]} is ${bad[1]}, so the update was not made; lower the learning rate or look at the batch`);
}
