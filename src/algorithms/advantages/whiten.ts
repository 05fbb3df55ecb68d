import type { Attempts } from '../attempts.ts';
import type { CreditOptions } from './contract.ts';

/** What is taken out of the advantages of a batch. */
export interface Whitening {
  /** Subtract the mean. */
  readonly mean: boolean;
  /** Divide by the standard deviation (about the mean, whether or not that is subtracted). */
  readonly std: boolean;
}

export interface WhitenedOptions extends CreditOptions {
  readonly whitening?: Whitening | undefined;
}

/** Below this variance there is nothing to scale by. */
const MINIMUM_VARIANCE = 1e-8;

/**
 * Centres and scales advantages over all kept policy tokens of the batch, in place: A ← (A − μ) / √max(σ², 1e-8), with
 * the population variance. Each token weighs as much as its attempt.
 */
export function whiten(
  view: Attempts,
  streams: readonly Float64Array[],
  whitening: Whitening,
  keep?: readonly Uint8Array[],
): void {
  const kept = keep && view.gather('keep', keep);
  const moments = (centre: number) => {
    let [total, sum, squares] = [0, 0, 0];
    for (const [i, stream] of streams.entries()) {
      const { weight } = view.attempts[i]!;
      const mask = kept?.[i];
      let [count, part, square] = [0, 0, 0];
      for (let t = 0; t < stream.length; t++) {
        if (mask !== undefined && mask[t]! === 0) continue;
        const value = stream[t]! - centre;
        count++;
        part += value;
        square += value * value;
      }
      total += weight * count;
      sum += weight * part;
      squares += weight * square;
    }
    return { total, mean: sum / total, square: squares / total };
  };
  const { total, mean } = moments(0);
  if (total === 0) return;
  // A second pass about the mean: a difference of two large sums would lose what they have in common.
  const variance = whitening.std ? moments(mean).square : 1;
  const scale = 1 / Math.sqrt(Math.max(variance, MINIMUM_VARIANCE));
  const centre = whitening.mean ? mean : 0;
  for (const stream of streams) for (let t = 0; t < stream.length; t++) stream[t] = (stream[t]! - centre) * scale;
}
