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
    for (const weight of row) {
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
  const perToken = (weight: (delta: number) => number) => deltas.map(row => Float32Array.from(row, weight));
  const perSequence = (weight: (total: number, mean: number) => (delta: number) => number) =>
    deltas.map(row => {
      const total = row.reduce((sum, delta) => sum + delta, 0);
      return Float32Array.from(row, weight(total, total / Math.max(row.length, 1)));
    });
  switch (type) {
    case 'tis':
      return perToken(delta => clamp(Math.exp(delta)));
    case 'icepop':
      return perToken(delta => (inside(Math.exp(delta)) ? Math.exp(delta) : 0));
    case 'seq-mask-tis':
      return perSequence((_, mean) => delta => (inside(Math.exp(mean)) ? clamp(Math.exp(delta)) : 0));
    case 'sequence-tis':
      return perSequence(total => () => Math.min(Math.exp(total), high));
    case 'sequence-reject':
      return perSequence(total => () => (inside(Math.exp(total)) ? 1 : 0));
    case 'geometric-reject':
      return perSequence((_, mean) => () => (inside(Math.exp(mean)) ? 1 : 0));
    case 'm2po':
      return secondMomentMask(deltas, high);
    default:
      throw unknownName('correction', type, CORRECTIONS);
  }
}

/** Keeps as many tokens as possible, smallest δ² first, with a mean of δ² of at most `threshold`; at least one. */
function secondMomentMask(deltas: readonly Float64Array[], threshold: number): Float32Array[] {
  const moments = deltas.flatMap((row, i) => [...row].map((delta, t) => ({ i, t, moment: delta * delta })));
  moments.sort((a, b) => a.moment - b.moment);
  const weights = deltas.map(row => new Float32Array(row.length));
  let sum = 0;
  for (const [kept, { i, t, moment }] of moments.entries()) {
    sum += moment;
    if (kept > 0 && sum / (kept + 1) > threshold) break;
    weights[i]![t] = 1;
  }
  return weights;
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
    for (const delta of row) {
      tokens++;
      k1 -= delta;
      k3 += Math.expm1(Math.min(delta, 20)) - Math.min(delta, 20);
      largest = Math.max(largest, Math.abs(delta));
      const bin = RATIO_EDGES.findIndex(edge => Math.exp(delta) < edge);
      bins[bin === -1 ? RATIO_EDGES.length : bin]! += 1;
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
    return Float64Array.from(row, (logprob, t) => {
      const delta = other[t]! - logprob;
      if (Number.isNaN(delta)) {
        throw new Error(
          `sequence ${i}, token ${t}: log-probs ${logprob} (sampler) and ${other[t]} (learner) cannot be compared`,
        );
      }
      return delta;
    });
  });
}
