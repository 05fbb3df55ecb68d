/** An error that names what was asked for and what there is, the nearest first. */
export function unknownName(kind: string, name: string, known: readonly string[]): Error {
  return new Error(unknownNameMessage(kind, name, known));
}

export function unknownNameMessage(kind: string, name: unknown, known: readonly string[]): string {
  const nearest = [...known].sort((a, b) => distance(String(name), a) - distance(String(name), b));
  return `unknown ${kind} '${String(name)}'; there are ${nearest.join(', ')}`;
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, substitution));
    }
    row = next;
  }
  return row[b.length]!;
}
