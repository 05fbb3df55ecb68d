import type { LearnerSequence } from './contracts.ts';

/**
 * The sequence whose one value is what a value model says after it has read all of `tokens`: a reward model's score.
 * The token behind them is never read, only its place is asked for.
 */
export function scoredSequence(tokens: Int32Array): LearnerSequence {
  const longer = new Int32Array(tokens.length + 1);
  longer.set(tokens);
  const predict = new Uint8Array(longer.length);
  predict[tokens.length] = 1;
  return { tokens: longer, predict };
}
