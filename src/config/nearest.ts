/** Levenshtein distance: insertions, deletions and substitutions that turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(substituted, previous[j]! + 1, current[j - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}

/**
 * The candidate that `name` most probably stood for, or undefined when none is close. A dotted candidate is also
 * compared by its last words, so that `lr` finds `actor.adam.lr`; on a tie the whole name wins, then the earlier one.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(name.length / 3));
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const words = candidate.split('.');
    words.forEach((_, skipped) => {
      const distance = editDistance(name, words.slice(skipped).join('.')) + (skipped > 0 ? 0.5 : 0);
      if (distance <= limit && (best === undefined || distance < best.distance)) best = { candidate, distance };
    });
  }
  return best?.candidate;
}
