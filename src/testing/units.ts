/** The places of each unit of `together` neighbours, added up: what `sequenceSum` adds over (LossBatch.together). Throws for what does not divide them. */
export function unitLengths(sequences: readonly { readonly length: number }[], together = 1): number[] {
  if (!(Number.isInteger(together) && together >= 1 && sequences.length % together === 0)) {
    throw new Error(
      `together must be a whole number ≥ 1 that divides the ${sequences.length} sequences, got ${together}`,
    );
  }
  const lengths: number[] = [];
  for (const [index, { length }] of sequences.entries()) {
    const unit = Math.floor(index / together);
    lengths[unit] = (lengths[unit] ?? 0) + length;
  }
  return lengths;
}
