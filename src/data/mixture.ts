import { concatRows, type Part, type Rows } from './rows.ts';

/**
 * A mixture of datasets: a run draws `probabilities[k]` of its rows from `lists[k]`, however large each of them is.
 * They need not add up to 1: they are divided by their sum.
 * @throws for probabilities that are not one positive number for each list, or so small that no draw is left
 */
export function mixRows<T>(lists: readonly Rows<T>[], probabilities: readonly number[]): Rows<T> {
  if (probabilities.length !== lists.length) {
    throw new Error(`${probabilities.length} probabilities for ${lists.length} datasets; give one for each`);
  }
  const bad = probabilities.find(p => !(p > 0 && Number.isFinite(p)));
  if (bad !== undefined) throw new Error(`the probability of a dataset is ${bad}; give a positive number`);
  const sum = probabilities.reduce((a, b) => a + b, 0);
  const mixture = lists.map(({ length }, k) => ({ rows: length, share: probabilities[k]! / sum }));
  drawsOfPass(mixture);
  return concatRows(lists, mixture);
}

/**
 * How many of the draws of a pass come from each part: exactly its share, rounded so that the pass has as many draws as
 * there are rows (largest remainder).
 */
export function drawsOfPass(parts: readonly Part[]): readonly number[] {
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  const draws = parts.map(({ share }) => Math.floor(share * rows));
  const remainders = parts.map(({ share }, part) => ({ part, remainder: share * rows - draws[part]! }));
  remainders.sort((a, b) => b.remainder - a.remainder || a.part - b.part);
  const missing = rows - draws.reduce((sum, count) => sum + count, 0);
  for (const { part } of remainders.slice(0, missing)) draws[part]! += 1;
  const none = draws.findIndex((count, k) => count === 0 || parts[k]!.rows === 0);
  if (none >= 0) {
    throw new Error(
      `a share of ${parts[none]!.share} gives dataset ${none + 1} of the mixture, which has ${parts[none]!.rows} rows, none of the ${rows} draws of a pass; leave it out or raise its probability`,
    );
  }
  return draws;
}
