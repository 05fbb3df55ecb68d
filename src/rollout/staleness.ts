import type { Episode } from '../episode/episode.ts';
import type { EpisodeGroup } from './groups.ts';

/** How many groups there are of each kind, and what bounds them. */
export interface Load {
  /** η ≥ 0: a group begun now may be trained on at most so many steps later. */
  readonly maxStaleness: number;
  /** v: batches whose update has reached the sampler. */
  readonly version: number;
  /** B: groups per batch. */
  readonly batchSize: number;
  /** Groups accepted in the whole run: those of all batches given, and those waiting. */
  readonly accepted: number;
  /** Accepted groups that no batch has taken yet. */
  readonly waiting: number;
  /** Groups under way. */
  readonly running: number;
  /** Places for groups that are under way or waiting: the bounded queue. */
  readonly slots: number;
}

/**
 * How many groups may be begun now; none when it is not positive.
 *
 *   min( slots − (waiting + running),  (η + v + 1) · B − (accepted + running) )
 *
 * The second term bounds staleness: when groups are trained on in the order in which they were begun, one begun at
 * version v belongs to batch v + η + 1 at the latest, which is trained on at version v + η. Groups that are refused do
 * not count, so they are replaced at no cost. η = 0 is synchronous, 1 overlaps by one step. Source: Fu et al., AReaL,
 * eq. 3, https://arxiv.org/abs/2505.24298, which bounds by concurrent episodes where this bounds by queue places; a
 * place is taken from the beginning of a group until it is trained on, so a full queue stops the sampler.
 */
export function capacity({ maxStaleness, version, batchSize, accepted, waiting, running, slots }: Load): number {
  return Math.min(slots - (waiting + running), (maxStaleness + version + 1) * batchSize - (accepted + running));
}

/** Versions are numbers of updates, and a step may make several: this counts in steps. */
export class PublishedVersions {
  readonly #versions: number[];

  /** @param versions that were served, oldest first */
  constructor(versions: readonly number[] = []) {
    this.#versions = [...versions];
  }

  /** Oldest first. Enough to tell how old a token is; what is older than all of them counts as the oldest. */
  get versions(): readonly number[] {
    return this.#versions;
  }

  /** New weights are served; a step without an update brings none. */
  add(version: number): void {
    if (this.#versions.at(-1) === version) return;
    this.#versions.push(version);
    if (this.#versions.length > 1024) this.#versions.shift();
  }

  /** How many times weights were published after those that sampled a token. */
  age(version: number): number {
    let age = 0;
    for (let i = this.#versions.length - 1; i > 0 && this.#versions[i]! > version; i--) age += 1;
    return age;
  }
}

/** The version that sampled the group's oldest token; infinite where nothing was sampled. */
export function oldestVersion({ episodes }: Pick<EpisodeGroup, 'episodes'>): number {
  let oldest = Number.POSITIVE_INFINITY;
  for (const { segments } of episodes) {
    for (const segment of segments) {
      if (segment.source === 'policy') for (const version of segment.versions) oldest = Math.min(oldest, version);
    }
  }
  return oldest;
}

/**
 * How much a group counts that is `age` steps old where `maxStaleness` are allowed: (η + 1) / (age + 1). The learning
 * rate of an update divided by its staleness: Zhang et al., Staleness-aware Async-SGD, https://arxiv.org/abs/1511.05950
 */
export function staleWeight(age: number, maxStaleness: number): number {
  return Math.min(1, (maxStaleness + 1) / (age + 1));
}

/**
 * `staleness_mean` and `staleness_max` over sampled tokens, in steps; `versions_per_sequence`, the mean number of
 * versions that sampled an episode, and `partial_rate`, the share of episodes that more than one sampled.
 */
export function stalenessMetrics(episodes: readonly Episode[], published: PublishedVersions): Record<string, number> {
  let [tokens, total, most, sampled, versions, partial] = [0, 0, 0, 0, 0, 0];
  const ages = new Map<number, number>();
  for (const { segments } of episodes) {
    const seen = new Set<number>();
    for (const segment of segments) {
      if (segment.source !== 'policy') continue;
      for (const version of segment.versions) {
        if (!ages.has(version)) ages.set(version, published.age(version));
        const age = ages.get(version)!;
        seen.add(version);
        total += age;
        most = Math.max(most, age);
      }
      tokens += segment.versions.length;
    }
    if (seen.size === 0) continue;
    sampled += 1;
    versions += seen.size;
    if (seen.size > 1) partial += 1;
  }
  if (tokens === 0) return {};
  return {
    staleness_mean: total / tokens,
    staleness_max: most,
    versions_per_sequence: versions / sampled,
    partial_rate: partial / sampled,
  };
}
