/**
 * Ratcliff-Obershelp similarity of two texts in [0, 1]: 2·M / (|a| + |b|), where M counts the characters of the longest
 * common substring and, recursively, of what lies left and right of it. Two empty texts are equal.
 * Source: Ratcliff and Metzener, Pattern Matching: The Gestalt Approach, 1988
 */
export function similarity(a: string, b: string): number {
  const total = a.length + b.length;
  return total === 0 ? 1 : (2 * matched(a, b)) / total;
}

/** The most that two texts of these lengths can be alike. */
export function similarityBound(a: number, b: number): number {
  return a + b === 0 ? 1 : (2 * Math.min(a, b)) / (a + b);
}

function matched(a: string, b: string): number {
  const { start, other, length } = longestCommon(a, b);
  if (length === 0) return 0;
  return (
    length + matched(a.slice(0, start), b.slice(0, other)) + matched(a.slice(start + length), b.slice(other + length))
  );
}

/** Longest common substring; the earliest in `a`, then in `b`, when there are several. */
function longestCommon(a: string, b: string): { start: number; other: number; length: number } {
  let best = { start: 0, other: 0, length: 0 };
  let ending = new Uint32Array(b.length + 1);
  for (let i = 0; i < a.length; i++) {
    const next = new Uint32Array(b.length + 1);
    for (let j = 0; j < b.length; j++) {
      if (a[i] !== b[j]) continue;
      const length = ending[j]! + 1;
      next[j + 1] = length;
      if (length > best.length) best = { start: i - length + 1, other: j - length + 1, length };
    }
    ending = next;
  }
  return best;
}
