import type { SamplingParams, TopLogprobs } from '../contracts.ts';

/** What truncation keeps of a distribution: the tokens with at least the log-probability `cut`, of mass `total`. */
export interface Kept {
  readonly cut: number;
  readonly total: number;
}

/** All of it. */
export const EVERYTHING: Kept = { cut: Number.NEGATIVE_INFINITY, total: 1 };

/** True when sampling must look at the whole distribution instead of drawing from it as it is. */
export function truncates({ topP, topK, minP, temperature }: SamplingParams): boolean {
  return temperature > 0 && (topP < 1 || topK > 0 || minP > 0);
}

/** Nats below the highest value within which a cut is looked for, in turn: few tokens lie within the first. */
const DEPTHS = [10, 40, Number.POSITIVE_INFINITY];

/**
 * Cuts a distribution by min-p, then top-k, then top-p over what is left, as vLLM orders them; tokens tied at a cut are
 * all kept.
 * @param logp [V] log-probabilities after temperature
 */
export function truncate(
  logp: Float32Array,
  { topP, topK, minP }: Pick<SamplingParams, 'topP' | 'topK' | 'minP'>,
): Kept {
  let cut = minP > 0 ? highest(logp) + Math.log(minP) : Number.NEGATIVE_INFINITY;
  if (topK > 0) cut = Math.max(cut, nthHighest(logp, topK));
  let total = 0;
  for (const value of logp) if (value >= cut) total += Math.exp(value);
  return topP < 1 ? nucleus(logp, { cut, total }, topP) : { cut, total };
}

/** The smallest set of the most probable tokens whose share of what is kept reaches topP. */
function nucleus(logp: Float32Array, kept: Kept, topP: number): Kept {
  for (const depth of DEPTHS) {
    const candidates = atLeast(logp, Math.max(highest(logp) - depth, kept.cut));
    let reached = 0;
    for (const [i, value] of candidates.entries()) {
      reached += Math.exp(value);
      if (reached < topP * kept.total || candidates[i + 1] === value) continue;
      return { cut: value, total: reached };
    }
  }
  // Rounding can leave a share of almost 1 unreached.
  return kept;
}

function highest(values: Float32Array): number {
  let found = Number.NEGATIVE_INFINITY;
  for (const value of values) if (value > found) found = value;
  return found;
}

/** The n-th highest value, or minus infinity where there are fewer. */
function nthHighest(values: Float32Array, n: number): number {
  for (const depth of DEPTHS) {
    const candidates = atLeast(values, highest(values) - depth);
    if (candidates.length >= n) return candidates[n - 1]!;
  }
  return Number.NEGATIVE_INFINITY;
}

/** The values that are not below the floor, highest first. */
function atLeast(values: Float32Array, floor: number): Float32Array {
  return values
    .filter(value => value >= floor)
    .sort()
    .reverse();
}

/**
 * Draws from what was kept.
 * @param uniform in [0, 1)
 * @returns the token and its log-probability under the cut, renormalised distribution
 */
export function draw(
  logp: Float32Array,
  { cut, total }: Kept,
  uniform: number,
): { readonly token: number; readonly logprob: number } {
  let rest = uniform * total;
  let token = -1;
  for (let id = 0; id < logp.length; id++) {
    if (logp[id]! < cut) continue;
    token = id;
    rest -= Math.exp(logp[id]!);
    if (rest < 0) break;
  }
  return { token, logprob: Math.min(0, logp[token]! - Math.log(total)) };
}

/** The `count` most probable tokens of what was kept, best first, ties by the lower id. */
export function topLogprobs(logp: Float32Array, count: number, { cut, total }: Kept): TopLogprobs {
  const least = Math.max(cut, nthHighest(logp, count));
  const ids: number[] = [];
  for (let id = 0; id < logp.length; id++) if (logp[id]! >= least) ids.push(id);
  const top = ids.sort((a, b) => logp[b]! - logp[a]! || a - b).slice(0, count);
  const norm = Math.log(total);
  return { tokens: Int32Array.from(top), logprobs: Float32Array.from(top, id => Math.min(0, logp[id]! - norm)) };
}
