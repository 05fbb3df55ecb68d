import type { LearnerSequence } from '../engines/contracts.ts';
import { SOURCE, type Trajectory, toTrajectories } from '../episode/trajectory.ts';
import { validateTrajectory } from '../episode/validate.ts';
import type { EpisodeGroup } from '../rollout/groups.ts';

/** Trajectories of one step as the learner takes them. Arrays are per trajectory [P], one value per policy token. */
export interface Experience {
  readonly trajectories: readonly Trajectory[];
  readonly sequences: readonly LearnerSequence[];
  /** Log-probs of the sampler when it sampled. */
  readonly behaviour: readonly Float32Array[];
  /** Log-probs of the learner before the step's first update. */
  readonly proximal: readonly Float32Array[];
  /** Log-probs of the frozen reference; present when the algorithm compares with it. */
  readonly reference?: readonly Float32Array[];
}

/** All trajectories of the groups that have something to learn from, checked against the invariants of episodes. */
export function trajectoriesOf(groups: readonly EpisodeGroup[], vocabularySize: number): Trajectory[] {
  const trajectories = groups
    .flatMap(({ episodes }) => episodes.flatMap(toTrajectories))
    .filter(({ sources }) => sources.includes(SOURCE.policy));
  for (const trajectory of trajectories) validateTrajectory(trajectory, { vocabularySize });
  return trajectories;
}

/** The learner predicts the policy's tokens and no others. */
export function toSequence({ tokens, sources }: Trajectory): LearnerSequence {
  return { tokens, predict: Uint8Array.from(sources, source => (source === SOURCE.policy ? 1 : 0)) };
}

/** [P] the values of the policy's tokens, out of an array [T]. */
export function atPolicyTokens(values: Float32Array, { sources }: Pick<Trajectory, 'sources'>): Float32Array {
  return values.filter((_, t) => sources[t] === SOURCE.policy);
}
