import { aggregate } from '../algorithms/aggregate.ts';
import { explainedVariance, valueLoss } from '../algorithms/losses/value.ts';
import type { Loss } from '../algorithms/ops.ts';
import type { Critic } from '../engines/contracts.ts';
import type { Experience } from './experience.ts';
import { refuseNonFinite } from './non-finite.ts';
import type { OptimizerOptions } from './optimizer.ts';

/** How the critic learns; batches and passes are those of the policy. */
export interface CriticOptions extends Omit<OptimizerOptions, 'batchSize' | 'epochs'> {
  /** Peak learning rate; 9e-6 when not given. */
  readonly learningRate?: number | undefined;
  /** Keeps one update from moving a value further than this, ≥ 0; 0.5 when not given, 0 for no bound. */
  readonly valueClip?: number | undefined;
  /** In the first so many steps only the critic learns; 0 when not given. */
  readonly freezingSteps?: number | undefined;
}

/** A critic with what its updates need. */
export interface CriticTrainer {
  readonly critic: Critic;
  readonly loss: Loss;
  /** Learning rate of the run's n-th update, from 0. */
  readonly learningRate: (update: number) => number;
  readonly freezingSteps: number;
}

/** @throws Error when an option makes no sense. */
export function criticTrainer(
  critic: Critic,
  { valueClip = 0.5, freezingSteps = 0 }: CriticOptions,
  learningRate: CriticTrainer['learningRate'],
): CriticTrainer {
  if (!(Number.isInteger(freezingSteps) && freezingSteps >= 0)) {
    throw new Error(`critic.freezing_steps must be a whole number ≥ 0, got ${freezingSteps}`);
  }
  return { critic, loss: valueLoss({ clip: valueClip === 0 ? undefined : valueClip }), learningRate, freezingSteps };
}

/**
 * One update of the critic. Metrics: critic_loss, values, value_clip_ratio, critic_lr, critic_grad_norm.
 * @param returns per trajectory [P] @param share per trajectory [P]: weights of the token mean
 */
export async function updateCritic(
  { critic, loss, learningRate }: CriticTrainer,
  { sequences, values }: Experience,
  {
    returns,
    share,
    temperature,
    update,
  }: {
    readonly returns: readonly Float32Array[];
    readonly share: readonly Float32Array[];
    readonly temperature: number;
    readonly update: number;
  },
): Promise<Record<string, number>> {
  if (values === undefined) throw new Error('the critic has not valued the trajectories it is to learn from');
  const inputs = { returns, old_values: values, weights: share, share };
  const { loss: _, ...metrics } = await critic.forwardBackward({ sequences, temperature, inputs }, loss);
  await refuseNonFinite(critic, metrics);
  const lr = learningRate(update);
  const { gradNorm } = await critic.optimizerStep({ lr });
  return { ...metrics, critic_lr: lr, critic_grad_norm: gradNorm };
}

/** How much of the returns the critic foresaw; nothing where they do not vary. */
export function foresight(
  { trajectories, values, keep }: Experience,
  returns: readonly Float32Array[],
): Record<string, number> {
  if (values === undefined) return {};
  const { share } = aggregate(trajectories, { mode: 'token' }, keep);
  const explained = explainedVariance(values, returns, share);
  return Number.isNaN(explained) ? {} : { explained_variance: explained };
}
