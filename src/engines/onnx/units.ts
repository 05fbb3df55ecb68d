import type { LossBatch } from '../contracts.ts';
import { neighbours } from './tree.ts';

/**
 * Units: the sequences that a loss compares with each other, such as the two of a pair. Alone a sequence is a unit.
 */

/**
 * Of each sequence the number of its unit, counted from 0 in the order in which units come.
 * @param indices of the sequences, in their batch
 * @param together how many neighbours of the batch make a unit
 */
export function unitsOf(indices: readonly number[], together: number): number[] {
  const numbers = new Map<number, number>();
  return indices.map(index => {
    const unit = Math.floor(index / together);
    const number = numbers.get(unit) ?? numbers.size;
    numbers.set(unit, number);
    return number;
  });
}

/**
 * Groups units of sequences into micro-batches of at most `budget` tokens, what the sequences of a unit share counted
 * once. The units with the longest sequences come first; one that is larger than the budget gets a micro-batch of its own.
 * @param unitOf of each sequence the unit it belongs to, from 0, members next to each other
 * @returns indices of sequences
 */
export function unitBatches(
  inputs: readonly Int32Array[],
  unitOf: readonly number[],
  budget: number,
  share: boolean,
): number[][] {
  const units: number[][] = [];
  for (const [index, unit] of unitOf.entries()) units[unit] = [...(units[unit] ?? []), index];
  const sized = units.map(unit => {
    const own = unit.map(index => inputs[index]!);
    const { order, shared } = neighbours(own, share);
    const size = order.reduce((sum, index, place) => sum + own[index]!.length - shared[place]!, 0);
    return { unit, size, longest: Math.max(...own.map(({ length }) => length)) };
  });
  sized.sort((a, b) => b.longest - a.longest || a.unit[0]! - b.unit[0]!);
  const batches: number[][] = [];
  let room = 0;
  for (const { unit, size } of sized) {
    if (batches.length === 0 || size > room) {
      batches.push([]);
      room = budget;
    }
    batches.at(-1)!.push(...unit);
    room -= size;
  }
  return batches;
}

/**
 * [S, P] with 1 where position p belongs to unit s.
 * @param unitOf [S] of each sequence the unit it belongs to, from 0
 */
export function membership(offsets: readonly number[], unitOf: readonly number[]): Float32Array {
  const P = offsets.at(-1)!;
  const matrix = new Float32Array((unitOf.at(-1)! + 1) * P);
  for (const [s, unit] of unitOf.entries()) matrix.fill(1, unit * P + offsets[s]!, unit * P + offsets[s + 1]!);
  return matrix;
}

/** @throws Error for a batch that such units cannot divide. */
export function checkTogether({ sequences, together = 1 }: LossBatch): void {
  if (Number.isInteger(together) && together >= 1 && sequences.length % together === 0) return;
  throw new Error(
    `the batch has ${sequences.length} sequences of which ${together} belong together; together must be a whole number ≥ 1 that divides them`,
  );
}
