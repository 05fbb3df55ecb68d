import type { SamplingParams } from '../contracts.ts';

/** True when sampling must look at the whole distribution instead of drawing from it as it is. */
export function truncates({ topP, topK, minP, temperature }: SamplingParams): boolean {
  return temperature > 0 && (topP < 1 || topK > 0 || minP > 0);
}

/**
 * Draws from a distribution cut by min-p, then top-k, then top-p over what is left, as vLLM orders them; tokens tied
 * at a cut are all kept.
 * @param logp [V] log-probabilities after temperature
 * @param uniform in [0, 1)
 * @returns the token and its log-probability under the cut, renormalised distribution
 */
export function sampleTruncated(
  logp: Float32Array,
  params: Pick<SamplingParams, 'topP' | 'topK' | 'minP'>,
  uniform: number,
): { token: number; logprob: number } {
  const sorted = logp.slice().sort().reverse();
  let cut = Number.NEGATIVE_INFINITY;
  if (params.minP > 0) cut = sorted[0]! + Math.log(params.minP);
  if (params.topK > 0 && params.topK < sorted.length) cut = Math.max(cut, sorted[params.topK - 1]!);
  if (params.topP < 1) {
    let mass = 0;
    for (const value of sorted) mass += value >= cut ? Math.exp(value) : 0;
    let reached = 0;
    for (const value of sorted) {
      reached += Math.exp(value);
      if (reached >= params.topP * mass) {
        cut = Math.max(cut, value);
        break;
      }
    }
  }
  let total = 0;
  for (const value of logp) if (value >= cut) total += Math.exp(value);
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

/** Refuses parameters that no distribution has. */
export function checkSampling(params: SamplingParams): void {
  const { temperature, topP, topK, minP, maxTokens } = params;
  const refuse = (name: string, value: unknown, expected: string) => {
    throw new RangeError(`sampling: ${name} is ${value}; expected ${expected}`);
  };
  if (!(temperature >= 0 && Number.isFinite(temperature))) refuse('temperature', temperature, '0 (greedy) or more');
  if (!(topP > 0 && topP <= 1)) refuse('top_p', topP, 'above 0 and at most 1 (1 is off)');
  if (!(Number.isInteger(topK) && topK >= 0)) refuse('top_k', topK, 'an integer of 0 (off) or more');
  if (!(minP >= 0 && minP < 1)) refuse('min_p', minP, '0 (off) or more and below 1');
  if (!(Number.isInteger(maxTokens) && maxTokens >= 1)) refuse('max tokens', maxTokens, 'an integer of 1 or more');
}
