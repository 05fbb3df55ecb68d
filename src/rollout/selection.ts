import type { Episode } from '../episode/episode.ts';

/** Dynamic sampling: groups that teach nothing are replaced by groups of other tasks. */
export interface GroupSelection {
  /** Whether a group is worth training on; asked about its episodes that did not fail. */
  readonly accepts: (episodes: readonly Episode[]) => boolean;
  /** Groups sampled for each that is missing, ≥ 1; 1 when not given. */
  readonly oversampling?: number | undefined;
  /** A batch samples at most so many times its groups, ≥ 1, and is smaller when that was not enough; 8 when not given. */
  readonly maxOversampling?: number | undefined;
}

/** How many groups to sample next: for those that are missing, within what the batch may still sample. */
export function nextRound(
  selection: GroupSelection | undefined,
  batch: { readonly groups: number; readonly accepted: number; readonly sampled: number },
): number {
  const missing = Math.max(0, batch.groups - batch.accepted);
  if (selection === undefined) return batch.sampled > 0 ? 0 : missing;
  const { oversampling = 1, maxOversampling = 8 } = selection;
  const left = Math.floor(maxOversampling * batch.groups) - batch.sampled;
  return Math.min(Math.ceil(missing * oversampling), left);
}

/** @throws Error for factors that cannot fill a batch. */
export function checkedSelection(selection: GroupSelection | undefined): GroupSelection | undefined {
  const { oversampling = 1, maxOversampling = 8 } = selection ?? {};
  if (!(oversampling >= 1 && oversampling <= maxOversampling && maxOversampling < Number.POSITIVE_INFINITY)) {
    throw new Error(
      `oversampling must be ordered, 1 ≤ rollout.oversampling ≤ rollout.max_oversampling, got ${oversampling} and ${maxOversampling}`,
    );
  }
  return selection;
}
