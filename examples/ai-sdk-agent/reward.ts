import { solve } from './agent.ts';

/** What tokenloop trains: the agent on one task, and what its answer earns. */
export const agent = async (episode: {
  task: { prompt: string; label: string };
  baseURL: string;
  apiKey: string;
}): Promise<number> => ((await solve(episode.task.prompt, episode)) === episode.task.label ? 1 : 0);
