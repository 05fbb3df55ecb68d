import type { RewardInput } from '../../src/rewards/contracts.ts';

/** What a reward is asked about an answer to the prompt `p`, whose label is `l`. */
export function rewardInput(text: string, more: Partial<RewardInput> = {}): RewardInput {
  return {
    task: { id: text, prompt: 'p', label: 'l', metadata: {} },
    prompt: 'p',
    text,
    query: `p${text}`,
    label: 'l',
    episode: { id: text, group: 'g', sample: 0, segments: [], steps: [] },
    signal: new AbortController().signal,
    ...more,
  };
}
