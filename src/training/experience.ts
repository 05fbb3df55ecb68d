import type { StepData } from '../algorithms/algorithm.ts';
import type { LearnerSequence } from '../engines/contracts.ts';
import { SOURCE, type Trajectory, toTrajectories } from '../episode/trajectory.ts';
import { validateTrajectory } from '../episode/validate.ts';
import type { EpisodeGroup } from '../rollout/groups.ts';
import { turnRows } from './turn-rows.ts';

/** The trajectories of one step as algorithm and learner take them. Arrays are per trajectory [P]: policy tokens. */
export interface Experience extends StepData {
  readonly sequences: readonly LearnerSequence[];
}

/**
 * All trajectories of the groups in which the policy sampled something, checked against the invariants.
 * @param perTurn one row for each turn instead of each leaf (turn-rows.ts)
 */
export function trajectoriesOf(groups: readonly EpisodeGroup[], perTurn = false): Trajectory[] {
  const leaves = groups.flatMap(({ episodes }) => episodes.flatMap(toTrajectories));
  const trajectories = (perTurn ? turnRows(leaves) : leaves).filter(({ sources }) => sources.includes(SOURCE.policy));
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
  const { trajectories, sequences, proximal, reference, values, keep } = experience;
  return {
    ...experience,
    trajectories: pick(trajectories),
    sequences: pick(sequences),
    proximal: proximal && pick(proximal),
    reference: reference && pick(reference),
    values: values && pick(values),
    keep: keep && pick(keep),
  };
}
