/** How values are spread: `counts[i]` of them lie in [`edges[i]`, `edges[i + 1]`), the last one included at the end. */
export interface Histogram {
  readonly edges: readonly number[];
  readonly counts: readonly number[];
  readonly min: number;
  readonly max: number;
  readonly sum: number;
  readonly sumSquares: number;
}

/**
 * Bins of equal width between the smallest and the largest value; one bin of width 0 when they are the same.
 * Undefined without a finite value.
 */
export function histogramOf(all: readonly number[], bins = 30): Histogram | undefined {
  const values = all.filter(Number.isFinite);
  if (values.length === 0) return undefined;
  const min = values.reduce((a, b) => Math.min(a, b));
  const max = values.reduce((a, b) => Math.max(a, b));
  const moments = {
    min,
    max,
    sum: values.reduce((sum, value) => sum + value, 0),
    sumSquares: values.reduce((sum, value) => sum + value * value, 0),
  };
  if (min === max) return { edges: [min, max], counts: [values.length], ...moments };
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) {
    const bin = Math.min(bins - 1, Math.floor((bins * (value - min)) / (max - min)));
    counts[bin]! += 1;
  }
  const edges = Array.from({ length: bins + 1 }, (_, i) => (i === bins ? max : min + (i * (max - min)) / bins));
  return { edges, counts, ...moments };
}
