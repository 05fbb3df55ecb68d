import { unknownName } from './names.ts';

/**
 * Corrections for samples that another distribution drew: an older policy, or the same weights in other arithmetic.
 * With δ_t = log π_proximal − log π_behaviour (no gradient) each gives a weight per token for the objective; 0 drops
 * the token from the loss but not from its denominator, so rejecting shrinks a step instead of inflating the rest.
 * A sequence is one row of the batch, n its policy tokens.
 *
 *   tis              clamp(exp δ_t, low, high)
 *   icepop           exp δ_t if low ≤ exp δ_t ≤ high, else 0
 *   seq-mask-tis     clamp(exp δ_t, low, high) if low ≤ exp((1/n) Σδ) ≤ high, else 0
 *   sequence-tis     min(exp Σδ, high) on every token
 *   sequence-reject  1 if low ≤ exp Σδ ≤ high, else 0
 *   geometric-reject 1 if low ≤ exp((1/n) Σδ) ≤ high, else 0
 *   m2po             1, but the tokens of largest δ² are dropped until the mean of δ² is at most the threshold
 *
 * Sources: tis: Yao et al., Your Efficient RL Framework Secretly Brings You Off-Policy RL Training, 2025; icepop: Ling
 * Team, Every Step Evolves, https://arxiv.org/abs/2510.18855; the decoupled objective that the weights belong to: Hilton
 * et al., https://arxiv.org/abs/2110.00641; m2po: Zheng et al., Prosperity before Collapse,
 * https://arxiv.org/abs/2510.01161
 */
export const CORRECTIONS = [
  'tis',
  'icepop',
  'seq-mask-tis',
  'sequence-tis',
  'sequence-reject',
  'geometric-reject',
  'm2po',
] as const;
export type CorrectionType = (typeof CORRECTIONS)[number];

export interface Correction {
  readonly type: CorrectionType;
  /** 0 ≤ low ≤ high bounds on a ratio; for m2po `high` is the threshold on the mean of δ². */
  readonly low: number;
  readonly high: number;
}

/** Bounds when none are given: OpenRLHF's for the first three, the usual ones of their sources for the rest. */
export const DEFAULT_BOUNDS: Readonly<Record<CorrectionType, readonly [low: number, high: number]>> = {
  tis: [0.5, 5],
  icepop: [0.5, 5],
  'seq-mask-tis': [0.5, 5],
  'sequence-tis': [0, 5],
  'sequence-reject': [0.5, 2],
  'geometric-reject': [0.99, 1.01],
  m2po: [0, 0.04],
};

export interface Corrected {
  /** Per sequence [P]. */
  readonly weights: Float32Array[];
  readonly metrics: Readonly<Record<string, number>>;
}

/** @throws Error when the bounds are not 0 ≤ low ≤ high or the type is unknown. */
export function checkedCorrection(correction: Correction): Correction {
  const { type, low, high } = correction;
  if (!CORRECTIONS.includes(type)) throw unknownName('correction', type, CORRECTIONS);
  if (!(low >= 0 && low <= high && high > 0)) {
    throw new Error(`correction thresholds must be ordered, 0 ≤ low ≤ high and high > 0, got ${low} and ${high}`);
  }
  return correction;
}

/**
 * @param behaviour per sequence [P], of the sampler @param proximal per sequence [P], of the learner before the update
 */
export function correct(
  correction: Correction,
  behaviour: readonly Float32Array[],
  proximal: readonly Float32Array[],
): Corrected {
  const deltas = logRatios(behaviour, proximal);
  const weights = weigh(checkedCorrection(correction), deltas);
  let sum = 0;
  let squares = 0;
  let tokens = 0;
  for (const row of weights) {
    for (let t = 0; t < row.length; t++) {
      const weight = row[t]!;
      sum += weight;
      squares += weight * weight;
    }
    tokens += row.length;
  }
  return {
    weights,
    metrics: {
      correction_mean: tokens > 0 ? sum / tokens : 1,
      // Kish's effective sample size, as a share of the tokens.
      correction_ess: squares > 0 ? (sum * sum) / (squares * tokens) : 0,
    },
  };
}

function weigh({ type, low, high }: Correction, deltas: readonly Float64Array[]): Float32Array[] {
  const clamp = (value: number) => Math.min(Math.max(value, low), high);
  const inside = (value: number) => value >= low && value <= high;
  const mean = (row: Float64Array) => total(row) / Math.max(row.length, 1);
  const constant = (row: Float64Array, weight: number) => new Float32Array(row.length).fill(weight);
  switch (type) {
    case 'tis':
      return deltas.map(row => perToken(row, clamp));
    case 'icepop':
      return deltas.map(row => perToken(row, ratio => (inside(ratio) ? ratio : 0)));
    case 'seq-mask-tis':
      return deltas.map(row => (inside(Math.exp(mean(row))) ? perToken(row, clamp) : constant(row, 0)));
    case 'sequence-tis':
      return deltas.map(row => constant(row, Math.min(Math.exp(total(row)), high)));
    case 'sequence-reject':
      return deltas.map(row => constant(row, inside(Math.exp(total(row))) ? 1 : 0));
    case 'geometric-reject':
      return deltas.map(row => constant(row, inside(Math.exp(mean(row))) ? 1 : 0));
    case 'm2po':
      return secondMomentMask(deltas, high);
    default:
      throw unknownName('correction', type, CORRECTIONS);
  }
}

/** [P] a weight for each ratio exp δ. */
function perToken(row: Float64Array, weight: (ratio: number) => number): Float32Array {
  const weights = new Float32Array(row.length);
  for (let t = 0; t < row.length; t++) weights[t] = weight(Math.exp(row[t]!));
  return weights;
}

function total(row: Float64Array): number {
  let sum = 0;
  for (let t = 0; t < row.length; t++) sum += row[t]!;
  return sum;
}

/**
 * Keeps as many tokens as possible, smallest δ² first and of equal ones the earlier, with a mean of δ² of at most
 * `threshold`; at least one. Tokens up to the threshold never lift the mean above it, so only the others are sorted.
 */
function secondMomentMask(deltas: readonly Float64Array[], threshold: number): Float32Array[] {
  const above: number[] = [];
  const kept = { count: 0, sum: 0 };
  for (const row of deltas) {
    for (let t = 0; t < row.length; t++) {
      const moment = row[t]! ** 2;
      if (moment > threshold) above.push(moment);
      else {
        kept.count += 1;
        kept.sum += moment;
      }
    }
  }
  const { largest, ties } = cutAt(Float64Array.from(above).sort(), threshold, kept);
  let left = ties;
  return deltas.map(row => {
    const weights = new Float32Array(row.length);
    for (let t = 0; t < row.length; t++) {
      const moment = row[t]! ** 2;
      if (moment <= threshold || moment < largest || (moment === largest && left-- > 0)) weights[t] = 1;
    }
    return weights;
  });
}

/** The largest of the sorted moments that is kept beside those kept already, and how many of just that size are. */
function cutAt(
  sorted: Float64Array,
  threshold: number,
  kept: { readonly count: number; readonly sum: number },
): { readonly largest: number; readonly ties: number } {
  let { count, sum } = kept;
  let largest = Number.NEGATIVE_INFINITY;
  let ties = 0;
  for (const moment of sorted) {
    sum += moment;
    count += 1;
    if (count > 1 && sum / count > threshold) break;
    ties = moment === largest ? ties + 1 : 1;
    largest = moment;
  }
  return { largest, ties };
}

/** Upper edges of the histogram of exp δ; the last bin is open. */
const RATIO_EDGES = [0.5, 0.8, 0.95, 1.05, 1.25, 2] as const;

/**
 * How far the sampler is from the learner: `vllm_kl`, mean of log π_behaviour − log π_proximal (k1 of the sampler
 * against the learner); `mismatch_k3`, its estimate that is never negative; `mismatch_max`, the largest |δ| in nats;
 * and `ratio_<bin>`, the share of tokens with exp δ in each bin.
 */
export function mismatch(
  behaviour: readonly Float32Array[],
  proximal: readonly Float32Array[],
): Record<string, number> {
  let tokens = 0;
  let k1 = 0;
  let k3 = 0;
  let largest = 0;
  const bins = new Array<number>(RATIO_EDGES.length + 1).fill(0);
  for (const row of logRatios(behaviour, proximal)) {
    tokens += row.length;
    for (let t = 0; t < row.length; t++) {
      const delta = row[t]!;
      k1 -= delta;
      k3 += Math.expm1(Math.min(delta, 20)) - Math.min(delta, 20);
      largest = Math.max(largest, Math.abs(delta));
      const ratio = Math.exp(delta);
      let bin = 0;
      while (bin < RATIO_EDGES.length && ratio >= RATIO_EDGES[bin]!) bin++;
      bins[bin]! += 1;
    }
  }
  const share = (value: number) => (tokens > 0 ? value / tokens : 0);
  const metrics: Record<string, number> = { vllm_kl: share(k1), mismatch_k3: share(k3), mismatch_max: largest };
  for (const [i, count] of bins.entries()) {
    const name = i < RATIO_EDGES.length ? `ratio_below_${RATIO_EDGES[i]}` : `ratio_from_${RATIO_EDGES.at(-1)}`;
    metrics[name] = share(count);
  }
  return metrics;
}

function logRatios(behaviour: readonly Float32Array[], proximal: readonly Float32Array[]): Float64Array[] {
  return behaviour.map((row, i) => {
    const other = proximal[i];
    if (other?.length !== row.length) {
      throw new Error(`sequence ${i} has ${row.length} behaviour log-probs and ${other?.length ?? 'no'} proximal ones`);
    }
    const deltas = new Float64Array(row.length);
    for (let t = 0; t < row.length; t++) {
      const delta = other[t]! - row[t]!;
      if (Number.isNaN(delta)) {
        throw new Error(
          `sequence ${i}, token ${t}: log-probs ${row[t]} (sampler) and ${other[t]} (learner) cannot be compared`,
        );
      }
      deltas[t] = delta;
    }
    return deltas;
  });
}
