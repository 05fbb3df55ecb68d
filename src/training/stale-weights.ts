import type { Trajectory } from '../episode/trajectory.ts';
import type { EpisodeGroup } from '../rollout/groups.ts';

/**
 * Advantages (per trajectory [P]) times the weight of the trajectory's group, where it has one. The objective is
 * linear in positive factors of the advantage, clipped or not, so this scales the gradient of the policy term.
 */
export function weighted(
  advantages: readonly Float32Array[],
  trajectories: readonly Pick<Trajectory, 'group'>[],
  groups: readonly EpisodeGroup[],
): readonly Float32Array[] {
  const weights = new Map(
    groups.flatMap(({ group, weight }) => (weight === undefined ? [] : [[group, weight] as const])),
  );
  if (weights.size === 0) return advantages;
  return advantages.map((row, i) => {
    const weight = weights.get(trajectories[i]!.group);
    return weight === undefined ? row : row.map(value => weight * value);
  });
}
