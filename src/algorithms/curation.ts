import { type Episode, episodeReward } from '../episode/episode.ts';
import type { EpisodeFilter } from './filters.ts';
import type { Penalty } from './penalties.ts';

/**
 * What becomes of an episode that a filter finds: `mask` takes its tokens out of the loss and leaves its reward in the
 * baseline of its group, as if it had been observed only; `remove` takes it out of both.
 */
export const FILTER_EFFECTS = ['mask', 'remove'] as const;
export type FilterEffect = (typeof FILTER_EFFECTS)[number];

/** What is done to the episodes of a step before they are compared. Names become metrics. */
export interface Curation {
  /** Applied in order. */
  readonly penalties?: readonly { readonly name: string; readonly apply: Penalty }[] | undefined;
  /** Asked about the episodes as they were sampled; where two find the same episode, `remove` wins. */
  readonly filters?:
    | readonly { readonly name: string; readonly finds: EpisodeFilter; readonly effect: FilterEffect }[]
    | undefined;
}

/** The samples of one task. */
export interface Samples {
  readonly episodes: readonly Episode[];
  /** The greedy attempt that they are compared with, where there is one. */
  readonly greedy?: Episode;
}

export interface Curated<G extends Samples> {
  readonly groups: G[];
  /** Ids of the episodes whose tokens are left out of the loss. */
  readonly masked: ReadonlySet<string>;
  /**
   * `penalty_<name>`: mean change of an episode's return; `filtered_<name>`: share of the episodes that it found;
   * `masked_episodes` and `removed_episodes`, shares; `groups_removed`: groups that were left with too few episodes.
   */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * The groups with penalties applied and without the episodes that filters remove; a group with fewer than
 * `minimumGroup` others is left out.
 */
export function curate<G extends Samples>(groups: readonly G[], curation: Curation, minimumGroup: number): Curated<G> {
  const { penalties = [], filters = [] } = curation;
  const episodes = groups.flatMap(group => group.episodes);
  const metrics: Record<string, number> = {};
  const share = (count: number) => (episodes.length > 0 ? count / episodes.length : 0);

  const found = new Map<Episode, FilterEffect>();
  for (const { name, finds, effect } of filters) {
    const matches = episodes.filter(finds);
    for (const episode of matches) if (found.get(episode) !== 'remove') found.set(episode, effect);
    metrics[`filtered_${name}`] = share(matches.length);
  }
  const masked = episodes.filter(episode => found.get(episode) === 'mask');
  if (filters.length > 0) {
    metrics.masked_episodes = share(masked.length);
    metrics.removed_episodes = share(found.size - masked.length);
  }

  const changes = new Map(penalties.map(({ name }) => [name, 0]));
  const penalised = (episode: Episode, count = true): Episode =>
    penalties.reduce((before, { name, apply }) => {
      const after = apply(before);
      if (count) changes.set(name, changes.get(name)! + episodeReward(after) - episodeReward(before));
      return after;
    }, episode);
  const changed = groups.map(group => ({
    ...group,
    episodes: group.episodes
      .map(episode => penalised(episode))
      .filter((_, i) => found.get(group.episodes[i]!) !== 'remove'),
    ...(group.greedy && { greedy: penalised(group.greedy, false) }),
  }));
  for (const [name, change] of changes) metrics[`penalty_${name}`] = share(change);

  const kept = changed.filter(group => group.episodes.length >= minimumGroup);
  if (filters.length > 0) metrics.groups_removed = changed.length - kept.length;
  return { groups: kept, masked: new Set(masked.map(({ id }) => id)), metrics };
}

/** The episodes that no filter removes. */
export function notRemoved(episodes: readonly Episode[], { filters = [] }: Curation): Episode[] {
  const removing = filters.filter(({ effect }) => effect === 'remove');
  return episodes.filter(episode => !removing.some(({ finds }) => finds(episode)));
}
