import { type Algorithm, lossInputs } from '../algorithms/algorithm.ts';
import type { Learner } from '../engines/contracts.ts';
import { type CriticTrainer, updateCritic } from './critic.ts';
import { type Experience, select } from './experience.ts';
import { type BatchOptions, miniBatches } from './mini-batches.ts';
import { refuseNonFinite } from './non-finite.ts';

export interface UpdateOptions extends BatchOptions {
  readonly temperature: number;
  /** Learning rate of the run's n-th update, from 0. */
  readonly learningRate: (update: number) => number;
  /** Updates of the run before this step. */
  readonly updates: number;
  /** Learns on the same batches, before the policy. */
  readonly critic?: CriticTrainer | undefined;
  /** Only the critic learns. */
  readonly frozen?: boolean | undefined;
  /** In [0, 1): share of itself that the average of the weights keeps at each update; without it there is none. */
  readonly averageBeta?: number | undefined;
}

export interface UpdateResult {
  /** Updates made. */
  readonly updates: number;
  /** Means over the updates; the last value of learning rates and gradient norms. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** What the updates of a step learn from. Arrays are per trajectory [P]. */
export interface Credit {
  readonly advantages: readonly Float32Array[];
  /** Targets of the critic. */
  readonly returns?: readonly Float32Array[];
}

/**
 * Optimizer updates on the experience of one step. A batch whose tokens are all left out makes none. Throws when a loss
 * or gradient is not finite; the update that would have used it is not made, so the learner has the weights from before.
 */
export async function update(
  learner: Learner,
  algorithm: Algorithm,
  experience: Experience,
  { advantages, returns }: Credit,
  options: UpdateOptions,
): Promise<UpdateResult> {
  const { critic, frozen = false, temperature, averageBeta } = options;
  const totals: Record<string, number> = {};
  let last: Record<string, number> = {};
  let updates = 0;
  for (const rows of miniBatches(experience, options)) {
    const batch = select(experience, rows);
    const { inputs, metrics: given } = lossInputs(algorithm, {
      ...batch,
      advantages: rows.map(row => advantages[row]!),
      version: learner.version,
    });
    const { share } = inputs;
    if (!share!.some(row => row.some(weight => weight > 0))) continue;
    const number = options.updates + updates;
    let metrics: Record<string, number> = {};
    if (critic && returns) {
      const targets = { returns: rows.map(row => returns[row]!), share: share!, temperature, update: number };
      const { critic_lr, critic_grad_norm, ...means } = await updateCritic(critic, batch, targets);
      metrics = means;
      last = { ...last, critic_lr: critic_lr!, critic_grad_norm: critic_grad_norm! };
    }
    if (!frozen) {
      const { sequences } = batch;
      const computed = await learner.forwardBackward({ sequences, temperature, inputs }, algorithm.loss);
      await refuseNonFinite(learner, computed);
      const lr = options.learningRate(number);
      const { gradNorm } = await learner.optimizerStep({ lr });
      if (averageBeta !== undefined) await learner.average?.update({ beta: averageBeta });
      metrics = { ...metrics, ...given, ...computed };
      last = { ...last, actor_lr: lr, actor_grad_norm: gradNorm };
    }
    updates += 1;
    for (const [name, value] of Object.entries(metrics)) totals[name] = (totals[name] ?? 0) + value;
  }
  const means = Object.fromEntries(Object.entries(totals).map(([name, total]) => [name, total / updates]));
  return { updates, metrics: { ...means, ...last } };
}
