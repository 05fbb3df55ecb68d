/**
 * What the losses of pairs read, for batches whose sequences come as chosen, rejected, chosen, rejected and so on. The
 * weights make the sums of a loss means over pairs; `pairs` may be larger than a batch that is a part of one.
 */

type Inputs = Readonly<Record<string, readonly Float32Array[]>>;

const DIRECTIONS = [1, -1] as const;

/** For `pairwiseLoss`, whose sequences have one predicted position. `margins` are those of the pairs. */
export function pairwiseInputs(margins: readonly number[], pairs = margins.length): Inputs {
  const both = (value: (margin: number, direction: number) => number) =>
    margins.flatMap(margin => DIRECTIONS.map(direction => Float32Array.of(value(margin, direction))));
  return {
    direction: both((_, direction) => direction),
    margin: both(margin => margin),
    weights: both(() => 1 / (2 * pairs)),
  };
}

/**
 * For `preferenceLoss`.
 * @param reference per sequence [P]: log-probs of the answers' tokens under the reference
 * @param mean whether answers are compared by the means over their tokens; by sums when not
 */
export function preferenceInputs(
  reference: readonly Float32Array[],
  { mean, pairs = reference.length / 2 }: { readonly mean: boolean; readonly pairs?: number },
): Inputs {
  const fill = (value: (tokens: number, isChosen: boolean, other: number) => number) =>
    reference.map(({ length }, i) => {
      const isChosen = i % 2 === 0;
      return new Float32Array(length).fill(value(length, isChosen, reference[isChosen ? i + 1 : i - 1]!.length));
    });
  return {
    reference,
    direction: fill((tokens, isChosen) => (isChosen ? 1 : -1) / (mean ? tokens : 1)),
    weights: fill((tokens, _, other) => 1 / (pairs * (tokens + other))),
    chosen: fill((_, isChosen) => (isChosen ? 1 / pairs : 0)),
    rejected: fill((_, isChosen) => (isChosen ? 0 : 1 / pairs)),
    likelihood: fill((tokens, isChosen) => (isChosen ? 1 / (pairs * tokens) : 0)),
  };
}
