import { failureCounts, withoutFailures } from './failures.ts';
import { type EpisodeGroup, episodesOf } from './groups.ts';
import { episodeMetrics, sampledTokens } from './metrics.ts';
import type { GroupSelection } from './selection.ts';

/** What every pipeline does with groups: it judges them, and reports what was sampled. */

/** Which groups may be trained on. */
export interface Standard {
  /** A group with fewer episodes that did not fail is not trained on. */
  readonly minimumGroup: number;
  /** Replaces groups that teach nothing; all are taken when not given. */
  readonly selection?: GroupSelection | undefined;
}

export interface Judged {
  /** Without their failed episodes. */
  readonly taken: readonly EpisodeGroup[];
  /** Groups in which too much failed. */
  readonly dropped: number;
  /** Groups that the selection refused. */
  readonly rejected: number;
}

export function judge(groups: readonly EpisodeGroup[], { minimumGroup, selection }: Standard): Judged {
  const usable = withoutFailures(groups, minimumGroup);
  const taken = selection ? usable.filter(({ episodes }) => selection.accepts(episodes)) : usable;
  return { taken, dropped: groups.length - usable.length, rejected: usable.length - taken.length };
}

export interface Reported extends Omit<Judged, 'taken'> {
  /** Everything that is reported with the batch, whatever became of it. */
  readonly sampled: readonly EpisodeGroup[];
  /** Given with dynamic filtering: accepted groups beyond the batch. */
  readonly waiting?: number | undefined;
  /** Time in which the groups were sampled. */
  readonly seconds: number;
}

/** `rollout/…` and `timing/…` of what was sampled for a batch (docs/metrics.md). */
export function sampledMetrics({ sampled, dropped, rejected, waiting, seconds }: Reported): Record<string, number> {
  const episodes = episodesOf(sampled);
  const metrics: Record<string, number> = {};
  const measured = episodeMetrics(sampled.flatMap(group => group.episodes));
  for (const [name, value] of Object.entries(measured)) metrics[`rollout/${name}`] = value;
  if (waiting !== undefined) {
    metrics['rollout/groups_sampled'] = sampled.length;
    metrics['rollout/groups_waiting'] = waiting;
    // A step that only waiting groups feed samples nothing, and has no rate.
    if (sampled.length > 0) {
      metrics['rollout/dynamic_filtering_pass_rate'] = (sampled.length - dropped - rejected) / sampled.length;
    }
  }
  const greedy = sampled.flatMap(group => group.greedy ?? []);
  const { reward_mean: greedyReward } = episodeMetrics(greedy);
  if (greedyReward !== undefined) metrics['rollout/greedy_reward_mean'] = greedyReward;
  return {
    ...metrics,
    ...failureCounts(episodes),
    'rollout/groups_dropped': dropped,
    'timing/generation': seconds,
    'timing/tokens_per_second': episodes.reduce((sum, episode) => sum + sampledTokens(episode), 0) / seconds,
  };
}

/** What is said when dynamic filtering could not fill a batch. */
export function tooFew(
  groups: number,
  size: number,
  { sampled, dropped, rejected }: Omit<Reported, 'seconds'>,
): string {
  return `only ${groups} of ${size} groups for this step: ${sampled.length} tasks were sampled, as many as rollout.max_oversampling allows, of which ${rejected} groups taught nothing and ${dropped} had too many failures`;
}
