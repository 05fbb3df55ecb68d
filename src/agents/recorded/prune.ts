import type { EpisodeRecorder } from '../../episode/episode.ts';

/** Leaves out what the policy was given and never answered, so that no path ends in it. Ids are given anew. */
export function pruneUnanswered({ segments, steps }: Pick<EpisodeRecorder, 'segments' | 'steps'>): void {
  const kept = new Set<number>();
  for (const { id, source } of segments) {
    if (source !== 'policy') continue;
    for (let above = id; above >= 0 && !kept.has(above); above = segments[above]!.parent) kept.add(above);
  }
  if (kept.size === segments.length) return;
  const order = segments.filter(({ id }) => kept.has(id));
  const renamed = new Map(order.map(({ id }, index) => [id, index]));
  const renumbered = order.map((segment, id) => ({ ...segment, id, parent: renamed.get(segment.parent) ?? -1 }));
  segments.splice(0, segments.length, ...renumbered);
  for (const step of steps) step.segment = renamed.get(step.segment)!;
}
