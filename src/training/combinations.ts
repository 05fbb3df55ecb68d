import { type Algorithm, checkGroupSize } from '../algorithms/algorithm.ts';
import { checkReferenceUpdate, type ReferenceUpdate } from './reference.ts';

/** What of a run's options must go together. */
export interface Combination {
  readonly algorithm: Algorithm;
  /** Episodes per task. */
  readonly groupSize: number;
  /** Whether a critic is given. */
  readonly critic: boolean;
  readonly turnRows: boolean;
  readonly reference?: ReferenceUpdate | undefined;
}

/** @throws Error for a combination that makes no sense, with the reason. */
export function refuseSenseless({ algorithm, groupSize, critic, turnRows, reference }: Combination): void {
  checkGroupSize(algorithm, groupSize);
  const { estimator, needs, kl } = algorithm;
  if (critic && !needs.critic) {
    throw new Error(
      `the estimator '${estimator.name}' has no critic, so critic options have no effect; leave them out or use 'gae'`,
    );
  }
  if (!critic && needs.critic) throw new Error(`the estimator '${estimator.name}' needs a critic, and none is given`);
  if (turnRows && estimator.leaves === 'alternatives') {
    throw new Error(
      `the estimator '${estimator.name}' compares whole attempts that share turns; they cannot be cut into one row a turn`,
    );
  }
  if (reference === undefined) return;
  checkReferenceUpdate(reference);
  if (kl === undefined) {
    throw new Error(
      'ref.update_steps and ref.ema_beta move the reference of a KL term, and there is none: set algo.kl.init_coef',
    );
  }
}
