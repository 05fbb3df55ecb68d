import type { Attempt } from './attempts.ts';

/**
 * What γ and λ count. `turn`: the clock advances between turns only, so inside an answer nothing is discounted.
 * `token`: it advances with every policy token. Tokens that the environment fed in never advance it.
 */
export type Time = 'turn' | 'token';
export const TIMES = ['turn', 'token'] as const;

/** [turns] G_k = r_k + γ·G_{k+1}: the reward from each turn on, discounted by turns. */
export function turnReturns(attempt: Attempt, gamma: number): Float64Array {
  const { turns } = attempt;
  const returns = new Float64Array(turns.length);
  let future = 0;
  for (let k = turns.length - 1; k >= 0; k--) {
    future = turns[k]!.reward + gamma * future;
    returns[k] = future;
  }
  return returns;
}

/**
 * [length] reward-to-go at every token, minus the per-token penalties still to come:
 * G_t = r_t − kl_t + γ_t·G_{t+1}, where γ_t is γ at the last token of a turn and, when time is counted in turns, 1
 * elsewhere. r_t is the reward of the turn at its last token, or what its token rewards say. A turn without tokens
 * hands its reward to the token before it.
 */
export function tokenReturns(
  attempt: Attempt,
  gamma: number,
  time: Time,
  penalties?: Float64Array,
  rewards = true,
): Float64Array {
  const { turns } = attempt;
  const returns = new Float64Array(attempt.length);
  const inside = time === 'turn' ? 1 : gamma;
  let future = 0;
  for (let k = turns.length - 1; k >= 0; k--) {
    const { start, end, reward, rewards: perToken } = turns[k]!;
    const inner = rewards ? perToken : undefined;
    const earned = rewards ? (perToken?.at(-1) ?? reward) : 0;
    if (end === start) {
      future = earned + (time === 'turn' ? gamma * future : future);
      continue;
    }
    future = earned + gamma * future - (penalties?.[end - 1] ?? 0);
    returns[end - 1] = future;
    for (let t = end - 2; t >= start; t--) {
      future = (inner?.[t - start] ?? 0) + inside * future - (penalties?.[t] ?? 0);
      returns[t] = future;
    }
  }
  return returns;
}

/** Undiscounted sum of the attempt's rewards. */
export function totalReward(attempt: Attempt): number {
  let sum = 0;
  for (const turn of attempt.turns) sum += turn.reward;
  return sum;
}
