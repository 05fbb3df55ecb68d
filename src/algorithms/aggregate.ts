import { SOURCE, type Trajectory } from '../episode/trajectory.ts';

/**
 * How per-token losses become one number. The choice is made outside the loss, as one weight per policy token over the
 * whole optimizer step: the loss is Σ weight·ℓ, a plain sum, so any split into micro-batches gives the same gradient.
 *
 *   token      1 / N                     N policy tokens in the step: every token counts the same
 *   sequence   1 / (E·n)                 E episodes, n tokens of this one: every episode counts the same
 *   constant   1 / (E·length)            a fixed length instead of n: no bias by length (Dr. GRPO)
 *
 * A token that several rows of an episode share (`Trajectory.shared`) is divided among them, so it counts once however
 * many leaves the tree has, and an episode recorded as many rows weighs no more than one recorded as a chain.
 */
export type Aggregation =
  | { readonly mode: 'token' }
  | { readonly mode: 'sequence' }
  | { readonly mode: 'constant'; readonly length: number };

export const AGGREGATION_MODES = ['token', 'sequence', 'constant'] as const;

export interface Weights {
  /** Per trajectory [P]: what each policy token's loss is multiplied with. 0 leaves the token out. */
  readonly weights: Float32Array[];
  /** Per trajectory [P]: weights of the plain token mean, for metrics. */
  readonly share: Float32Array[];
  /** Number of distinct policy tokens that count. */
  readonly tokens: number;
}

/**
 * Weights for all the trajectories of one optimizer step; all rows of an episode belong into the same step.
 * @param keep per trajectory [P]: 0 takes a token out of the loss and of the counts (overlong filtering, void turns)
 */
export function aggregate(
  trajectories: readonly Pick<Trajectory, 'episode' | 'sources' | 'shared'>[],
  aggregation: Aggregation,
  keep?: readonly Uint8Array[],
): Weights {
  if (aggregation.mode === 'constant' && !(aggregation.length > 0)) {
    throw new Error(`constant aggregation divides by a length > 0, got ${aggregation.length}`);
  }
  const share = trajectories.map((trajectory, i) => tokenShares(trajectory, keep?.[i]));
  const perEpisode = new Map<string, number>();
  let tokens = 0;
  for (const [i, trajectory] of trajectories.entries()) {
    let sum = 0;
    for (const value of share[i]!) sum += value;
    perEpisode.set(trajectory.episode, (perEpisode.get(trajectory.episode) ?? 0) + sum);
    tokens += sum;
  }
  const nonEmpty = [...perEpisode.values()].filter(count => count > 0).length;

  const factor = (episode: string): number => {
    switch (aggregation.mode) {
      case 'token':
        return 1 / tokens;
      case 'sequence':
        return 1 / (nonEmpty * perEpisode.get(episode)!);
      case 'constant':
        return 1 / (perEpisode.size * aggregation.length);
    }
  };
  return {
    weights: trajectories.map((trajectory, i) => scaled(share[i]!, factor(trajectory.episode))),
    share: share.map(row => scaled(row, 1 / tokens)),
    tokens: Math.round(tokens),
  };
}

/** Weights of a token mean over rows that are not episodes (supervised examples). @param counts [rows] tokens in each */
export function tokenMean(counts: readonly number[]): Float32Array[] {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.map(count => new Float32Array(count).fill(1 / total));
}

/** [P] 1 / number of leaves that share the token; 0 where it is not kept. */
function tokenShares(trajectory: Pick<Trajectory, 'sources' | 'shared'>, keep: Uint8Array | undefined): Float64Array {
  const { sources, shared } = trajectory;
  const shares = new Float64Array(sources.length);
  let count = 0;
  for (let t = 0; t < sources.length; t++) {
    if (sources[t] !== SOURCE.policy) continue;
    shares[count] = keep === undefined || keep[count] !== 0 ? 1 / shared[t]! : 0;
    count++;
  }
  if (keep !== undefined && keep.length !== count) {
    throw new Error(`a mask of ${keep.length} values was given for ${count} policy tokens`);
  }
  return shares.subarray(0, count);
}

function scaled(values: Float64Array, factor: number): Float32Array {
  const result = new Float32Array(values.length);
  // Zero times an infinite factor (nothing is kept at all) must stay zero.
  for (let p = 0; p < values.length; p++) if (values[p] !== 0) result[p] = values[p]! * factor;
  return result;
}
