/**
 * The 95 % confidence interval of a share of which `successes` of `n` independent trials are seen: that of the score
 * test, which stays inside [0, 1] and means something at 0 and at n. Source: Wilson, Probable inference, the law of
 * succession, and statistical inference, 1927; Brown, Cai and DasGupta, Interval estimation for a binomial proportion,
 * 2001, eq. 4. [0, 1] for no trials.
 */
export function shareInterval(successes: number, n: number): readonly [low: number, high: number] {
  if (!(successes >= 0 && successes <= n)) throw new Error(`${successes} successes of ${n} trials are impossible`);
  if (n === 0) return [0, 1];
  const share = successes / n;
  const z2 = Z * Z;
  const middle = (share + z2 / (2 * n)) / (1 + z2 / n);
  const reach = (Z / (1 + z2 / n)) * Math.sqrt((share * (1 - share)) / n + z2 / (4 * n * n));
  return [successes === 0 ? 0 : middle - reach, successes === n ? 1 : middle + reach];
}

/** The 0.975 quantile of the normal distribution. */
const Z = 1.959963984540054;
