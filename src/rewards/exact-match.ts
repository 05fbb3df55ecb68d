import { perSample, type RewardFunction } from './contracts.ts';

/**
 * 1 when the answer is the label, else 0. Both are trimmed first.
 * @param extract takes the answer out of the policy's text; undefined means that there is none
 */
export function exactMatch(options: { readonly extract?: (text: string) => string | undefined } = {}): RewardFunction {
  const { extract = (text: string) => text } = options;
  return perSample(({ text, label }) => (extract(text)?.trim() === label.trim() ? 1 : 0));
}
