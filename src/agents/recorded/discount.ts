import type { EpisodeRecorder } from '../../episode/episode.ts';

/**
 * G(a) = r(a) + γ · Σ G(b) over the answers b that continue a, along the edges of the tree: an answer earns nothing for
 * what other branches earned. Becomes the reward of the answer's step.
 */
export function discountAlongTree({ segments, steps }: Pick<EpisodeRecorder, 'segments' | 'steps'>, gamma: number) {
  const own = new Map(steps.map(step => [step.segment, step]));
  const answerAbove = (segment: number): number => {
    let id = segments[segment]!.parent;
    while (id >= 0 && !own.has(id)) id = segments[id]!.parent;
    return id;
  };
  // Children come after their parents.
  for (const step of [...steps].sort((a, b) => b.segment - a.segment)) {
    const above = own.get(answerAbove(step.segment));
    if (above !== undefined) above.reward += gamma * step.reward;
  }
}
