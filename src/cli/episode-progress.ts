import type { Executor } from '../agents/contracts.ts';
import { episodeReward } from '../episode/episode.ts';
import type { Tracker } from '../tracking/contracts.ts';

/** The agent, which tells the tracker after each episode how many have ended, their mean reward and the failed share. */
export function countingEpisodes(agent: Executor, tracker: Tracker): Executor {
  let [ended, failed, reward] = [0, 0, 0];
  return {
    name: agent.name,
    ...(agent.close && { close: () => agent.close!() }),
    run: async (task, context) => {
      const episode = await agent.run(task, context);
      ended += 1;
      if (episode.outcome.kind === 'failed') failed += 1;
      else reward += episodeReward(episode);
      const mean = ended > failed ? { reward: reward / (ended - failed) } : {};
      await tracker.log({ step: ended, metrics: { ...mean, failed: failed / ended } });
      return episode;
    },
  };
}
