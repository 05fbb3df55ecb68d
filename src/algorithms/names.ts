import { editDistance } from '../options/nearest.ts';

/** An error that names what was asked for and what there is, the nearest first. */
export function unknownName(kind: string, name: string, known: readonly string[]): Error {
  return new Error(unknownNameMessage(kind, name, known));
}

export function unknownNameMessage(kind: string, name: unknown, known: readonly string[]): string {
  const nearest = [...known].sort((a, b) => editDistance(String(name), a) - editDistance(String(name), b));
  return `unknown ${kind} '${String(name)}'; there are ${nearest.join(', ')}`;
}
