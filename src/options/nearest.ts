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
 * The candidate that `name` most probably stood for, or undefined when none is close: at most a third of the letters
 * wrong, first words that agree not counted. A dotted candidate is also compared by its last words alone, so that `lr`
 * finds `actor.adam.lr`, and one that only goes on (`train.async`, `train.async_enable`) is close. On a tie the whole
 * name wins, then the earlier candidate.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = Math.min(
      distanceOf(...withoutCommonWords(name, candidate)),
      ...tails(candidate).map(tail => distanceOf(name, tail) + 0.5),
      candidate.startsWith(`${name}_`) ? 1 : Infinity,
    );
    if (distance < (best?.distance ?? Infinity)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Edits between them, infinite beyond a third of the letters of `a`. */
function distanceOf(a: string, b: string): number {
  const distance = editDistance(a, b);
  return distance <= Math.ceil(a.length / 3) ? distance : Infinity;
}

function withoutCommonWords(a: string, b: string): [string, string] {
  const [aWords, bWords] = [a.split('.'), b.split('.')];
  let common = 0;
  while (common < aWords.length - 1 && aWords[common] === bWords[common]) common++;
  return [aWords.slice(common).join('.'), bWords.slice(common).join('.')];
}

function tails(name: string): string[] {
  const words = name.split('.');
  return words.slice(1).map((_, at) => words.slice(at + 1).join('.'));
}
