import type { Aggregating, Item, Verdict } from '../../envs/clients/nemo-gym/contracts.ts';
import type { Episode } from '../../episode/episode.ts';

/** What the server said of each episode, for as long as somebody holds the episode. */
export class Verdicts {
  readonly #of = new WeakMap<Episode, Verdict>();

  set(episode: Episode, verdict: Verdict): void {
    this.#of.set(episode, verdict);
  }

  /**
   * What the server says of groups of episodes together: `nemo_gym/<its name>`. Failed episodes are not among them, as
   * in NeMo Gym; without any other there is nothing to ask.
   */
  async summary(server: Aggregating, groups: readonly (readonly Episode[])[], signal: AbortSignal) {
    const verified = groups.flatMap((episodes, task) =>
      episodes.flatMap((episode, rollout): Item[] => {
        const verdict = this.#of.get(episode);
        return verdict === undefined ? [] : [{ ...verdict, _ng_task_index: task, _ng_rollout_index: rollout }];
      }),
    );
    if (verified.length === 0) return {};
    const metrics = await server.aggregateMetrics(verified, signal);
    return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`nemo_gym/${name}`, value]));
  }
}

/** Parts of the reward as metrics of the episode: `nemo_gym_reward_<name>`. */
export function componentsOf({ reward_components: parts = {} }: Verdict): Record<string, number> {
  return Object.fromEntries(Object.entries(parts).map(([name, value]) => [`nemo_gym_reward_${name}`, value]));
}
