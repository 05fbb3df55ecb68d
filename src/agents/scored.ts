import type { EnvironmentFactory } from '../envs/contracts.ts';
import { boundary } from '../episode/failure.ts';
import type { RewardFunction } from '../rewards/contracts.ts';
import { checkReward } from './checks.ts';

/** A reward function as an environment of one turn, for execution modes that work on environments. */
export function scoredAnswer(reward: RewardFunction): EnvironmentFactory {
  return () => ({
    reset: ({ prompt, images }) => ({ observation: prompt, ...(images ? { images } : {}) }),
    async step({ actionText, observationText, task, label, signal }) {
      const episode = { id: task.id, group: task.id, sample: 0, segments: [], steps: [] };
      const query = observationText + actionText;
      const input = { task, prompt: observationText, text: actionText, query, label, episode, signal };
      const scored = await boundary('reward', 'reward', async () => checkReward(await reward([input]), { steps: 1 }));
      const { tokens: _, steps: __, ...result } = scored;
      return { ...result, done: true };
    },
  });
}
