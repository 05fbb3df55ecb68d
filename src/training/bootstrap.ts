import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { mean, standardDeviation } from '../rollout/metrics.ts';

/** How far two sets of paired values are apart. */
export interface PairedDifference {
  /** Mean of after − before. */
  readonly difference: number;
  /** 95 % confidence interval of it: percentiles of the bootstrap distribution. */
  readonly low: number;
  readonly high: number;
  /** Two-sided probability of a difference at least as far from 0 if there were none, at least 1 / (resamples + 1). */
  readonly p: number;
}

/** Standard error of the mean of independent values, s / √n; 0 for fewer than two. */
export function standardError(values: readonly number[]): number {
  return values.length < 2 ? 0 : standardDeviation(values) / Math.sqrt(values.length);
}

/**
 * Paired bootstrap of the mean difference: the pairs are drawn anew, with replacement, so many times. Source: Efron and
 * Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 (percentile interval) and 16 (tests); pairing by task
 * as in Koehn, Statistical significance tests for machine translation evaluation, 2004.
 *
 * @param draw gives an index below n; from a fixed seed when not given, so that equal values give equal answers
 */
export function pairedBootstrap(
  before: readonly number[],
  after: readonly number[],
  {
    resamples = 2000,
    draw = seededDraw(),
  }: { readonly resamples?: number; readonly draw?: (n: number) => number } = {},
): PairedDifference {
  const n = before.length;
  if (n === 0 || after.length !== n) {
    throw new Error(
      `a paired bootstrap needs as many values before as after, and at least one; got ${n} and ${after.length}`,
    );
  }
  const differences = after.map((value, i) => value - before[i]!);
  const means = Float64Array.from({ length: resamples }, () => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += differences[draw(n)]!;
    return sum / n;
  }).sort();
  const tail = (beyond: (value: number) => boolean) =>
    means.reduce((count, value) => count + (beyond(value) ? 1 : 0), 0);
  const rarer = Math.min(
    tail(value => value <= 0),
    tail(value => value >= 0),
  );
  return {
    difference: mean(differences),
    low: quantile(means, 0.025),
    high: quantile(means, 0.975),
    p: Math.min(1, (2 * (rarer + 1)) / (resamples + 1)),
  };
}

function seededDraw(): (n: number) => number {
  const random = xoroshiro128plus(0);
  return n => uniformInt(random, 0, n - 1);
}

/** Linear between the two nearest of sorted values, as numpy.quantile. */
function quantile(sorted: Float64Array, q: number): number {
  const at = q * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(at)]!, sorted[Math.ceil(at)]!];
  return below + (at - Math.floor(at)) * (above - below);
}
