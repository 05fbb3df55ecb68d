import type { StepData } from '../algorithms/algorithm.ts';
import type { LearnerSequence } from '../engines/contracts.ts';
import { SOURCE, type Trajectory, toTrajectories } from '../episode/trajectory.ts';
import { validateTrajectory } from '../episode/validate.ts';
import type { EpisodeGroup } from '../rollout/groups.ts';

/** The trajectories of one step as algorithm and learner take them. Arrays are per trajectory [P]: policy tokens. */
export interface Experience extends StepData {
  readonly sequences: readonly LearnerSequence[];
}

/** All trajectories of the groups in which the policy sampled something, checked against the invariants. */
export function trajectoriesOf(groups: readonly EpisodeGroup[]): Trajectory[] {
  const trajectories = groups
    .flatMap(({ episodes }) => episodes.flatMap(toTrajectories))
    .filter(({ sources }) => sources.includes(SOURCE.policy));
  for (const trajectory of trajectories) validateTrajectory(trajectory);
  return trajectories;
}

/** The learner predicts the policy's tokens and no others. */
export function toSequence({ tokens, sources }: Pick<Trajectory, 'tokens' | 'sources'>): LearnerSequence {
  return { tokens, predict: Uint8Array.from(sources, source => (source === SOURCE.policy ? 1 : 0)) };
}

/** The given rows of the experience. */
export function select(experience: Experience, rows: readonly number[]): Experience {
  const pick = <T>(values: readonly T[]) => rows.map(row => values[row]!);
  const { trajectories, sequences, proximal, reference, beta } = experience;
  return {
    trajectories: pick(trajectories),
    sequences: pick(sequences),
    proximal: proximal && pick(proximal),
    reference: reference && pick(reference),
    beta,
  };
}
