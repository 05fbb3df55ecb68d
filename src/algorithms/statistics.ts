/** Weighted statistics. With equal weights they are the ordinary ones. */

export function weightedMean(values: ArrayLike<number>, weights: ArrayLike<number>): number {
  let sum = 0;
  let total = 0;
  for (let i = 0; i < values.length; i++) {
    sum += weights[i]! * values[i]!;
    total += weights[i]!;
  }
  return sum / total;
}

/** Unbiased standard deviation (n − 1 when the weights are equal); 0 for fewer than two values. */
export function weightedStd(values: ArrayLike<number>, weights: ArrayLike<number>, mean: number): number {
  let sum = 0;
  let total = 0;
  let squared = 0;
  for (let i = 0; i < values.length; i++) {
    sum += weights[i]! * (values[i]! - mean) ** 2;
    total += weights[i]!;
    squared += weights[i]! ** 2;
  }
  const freedom = total - squared / total;
  return values.length < 2 ? 0 : Math.sqrt(sum / freedom);
}

export function allEqual(values: ArrayLike<number>): boolean {
  for (let i = 1; i < values.length; i++) if (values[i] !== values[0]) return false;
  return true;
}
