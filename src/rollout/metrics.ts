import { type Episode, episodeReward } from '../episode/episode.ts';

/**
 * Metrics of a set of episodes, without prefix: reward_mean, reward_std, score_mean, response_length_mean (sampled
 * tokens), total_length_mean, truncated_rate, num_samples, and the mean of every metric that environments
 * and rewards gave. Failed episodes take no part.
 */
export function episodeMetrics(all: readonly Episode[]): Record<string, number> {
  const episodes = all.filter(({ outcome }) => outcome.kind !== 'failed');
  if (episodes.length === 0) return { num_samples: 0 };
  const rewards = episodes.map(episodeReward);
  return {
    ...environmentMetrics(episodes),
    num_samples: episodes.length,
    reward_mean: mean(rewards),
    reward_std: standardDeviation(rewards),
    score_mean: mean(episodes.map(({ score }) => score)),
    response_length_mean: mean(episodes.map(sampledTokens)),
    total_length_mean: mean(episodes.map(({ segments }) => segments.reduce((n, { tokens }) => n + tokens.length, 0))),
    truncated_rate: mean(episodes.map(({ outcome }) => (outcome.kind === 'truncated' ? 1 : 0))),
  };
}

/** Number of tokens the policy sampled in an episode. */
export function sampledTokens({ segments }: Pick<Episode, 'segments'>): number {
  return segments.reduce((n, segment) => n + (segment.source === 'policy' ? segment.tokens.length : 0), 0);
}

/** Mean of each metric over the episodes that have it. */
function environmentMetrics(episodes: readonly Episode[]): Record<string, number> {
  const values = new Map<string, number[]>();
  for (const { metrics } of episodes) {
    for (const [name, value] of Object.entries(metrics)) {
      const known = values.get(name);
      if (known === undefined) values.set(name, [value]);
      else known.push(value);
    }
  }
  return Object.fromEntries([...values].map(([name, of]) => [name, mean(of)]));
}

/** Arithmetic mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Sample standard deviation (divides by n − 1); 0 for fewer than two values. */
export function standardDeviation(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const center = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - center) ** 2, 0) / (values.length - 1));
}
