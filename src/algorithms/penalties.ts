import { type Episode, episodeReward, leaves, path, type Step } from '../episode/episode.ts';
import { isTruncated } from './filters.ts';

/**
 * Changes of an episode's rewards, made before any baseline. Each returns the same episode when there is nothing to
 * change; `score`, which filters read, stays what the task gave. Where leaves are alternatives, each path is an answer of
 * its own.
 */
export type Penalty = (episode: Episode) => Episode;

/**
 * Soft punishment of overlong answers: with n policy tokens, −factor·min(n − (maxTokens − buffer), buffer) / buffer is
 * added to the last step where that is below zero. Tokens of the environment do not count.
 * @param options.maxTokens policy tokens an episode may have @param options.buffer tokens before that in which the
 * penalty grows, in (0, maxTokens]
 * Source: Yu et al., DAPO, eq. 13, https://arxiv.org/abs/2503.14476
 */
export function overlongPenalty(options: {
  readonly maxTokens: number;
  readonly buffer: number;
  readonly factor?: number | undefined;
}): Penalty {
  const { maxTokens, buffer, factor = 1 } = options;
  if (!(buffer > 0 && buffer <= maxTokens)) {
    throw new Error(`the overlong buffer must be in (0, ${maxTokens}], the longest answer, got ${buffer}`);
  }
  if (!(factor >= 0 && factor < Number.POSITIVE_INFINITY)) throw new Error(`the factor must be ≥ 0, got ${factor}`);
  return episode => {
    const rewards = episode.steps.map(({ reward }) => reward);
    let changed = false;
    for (const { segments, last } of answers(episode)) {
      const tokens = segments.reduce((sum, id) => {
        const { source, tokens } = episode.segments[id]!;
        return source === 'policy' ? sum + tokens.length : sum;
      }, 0);
      const exceeded = Math.min(tokens - (maxTokens - buffer), buffer);
      if (exceeded <= 0) continue;
      rewards[last]! += (-exceeded / buffer) * factor;
      changed = true;
    }
    return changed ? withRewards(episode, rewards) : episode;
  };
}

/**
 * For episodes cut off by a length limit in whatever turn: a coefficient in [0, 1] scales every reward; a negative one
 * replaces the episode's return, all of it on the last step. Where leaves are alternatives, only the last step of a path
 * that was cut off changes, since the others belong to other paths, too.
 * Source: Liu et al., ProRL, https://arxiv.org/abs/2505.24864
 */
export function stopProperly(coefficient: number): Penalty {
  if (!(coefficient <= 1 && coefficient > Number.NEGATIVE_INFINITY)) {
    throw new Error(`the stop-properly coefficient must be in [0, 1], or negative, got ${coefficient}`);
  }
  return episode => {
    if (episode.leaves === 'alternatives') return cutPathsScaled(episode, coefficient);
    if (!isTruncated(episode)) return episode;
    if (coefficient >= 0) return { ...episode, steps: episode.steps.map(step => scaled(step, coefficient)) };
    return withRewardsAtEnd(episode, lastOnly(episode.steps, coefficient));
  };
}

export const REWARD_SPLITS = ['last', 'broadcast', 'uniform', 'geometric'] as const;
export type RewardSplit = (typeof REWARD_SPLITS)[number];

/**
 * Spreads an episode's return R over its n steps, for training each turn as a row of its own:
 *
 *   last        0, …, 0, R
 *   broadcast   R, …, R                                   (sums to n·R)
 *   uniform     R / n, …, R / n
 *   geometric   R·g^(n−1−k)·(1 − g) / (1 − g^n)           at step k from 0: later steps get more; sums to R
 *
 * Estimators sum the rewards from a turn on, so `last` already credits every turn with R, and `broadcast` more to
 * earlier turns.
 * @param g in (0, 1), 0.9 when not given
 */
export function splitReward(split: RewardSplit, g = 0.9): Penalty {
  if (!(g > 0 && g < 1)) throw new Error(`the geometric split needs a factor in (0, 1), got ${g}`);
  return episode => {
    if (episode.leaves === 'alternatives') {
      throw new Error(
        `episode '${episode.id}' comes from a search: its return cannot be split over turns that paths share`,
      );
    }
    if (episode.steps.some(({ seat }) => seat !== undefined)) {
      throw new Error(
        `episode '${episode.id}' has several seats: their rewards are their own and cannot be split over all`,
      );
    }
    const n = episode.steps.length;
    const total = episodeReward(episode);
    switch (split) {
      case 'last':
        return withRewardsAtEnd(episode, lastOnly(episode.steps, total));
      case 'broadcast':
        return withRewardsAtEnd(episode, new Array<number>(n).fill(total));
      case 'uniform':
        return withRewardsAtEnd(episode, new Array<number>(n).fill(total / n));
      case 'geometric': {
        const first = (total * (1 - g)) / (1 - g ** n);
        return withRewardsAtEnd(
          episode,
          episode.steps.map((_, k) => first * g ** (n - 1 - k)),
        );
      }
    }
  };
}

function cutPathsScaled(episode: Episode, coefficient: number): Episode {
  const steps = [...episode.steps];
  for (const { last } of answers(episode)) {
    const step = steps[last]!;
    if (step.finishReason !== 'length') continue;
    steps[last] = coefficient >= 0 ? scaled(step, coefficient) : atEnd(step, coefficient);
  }
  return { ...episode, steps };
}

/** The answers of an episode: all of it, or one for each seat, or for each path; `last` is the index of its last step. */
function answers(episode: Episode): { readonly segments: readonly number[]; readonly last: number }[] {
  const { segments, steps } = episode;
  if (steps.length === 0) return [];
  const seats = new Set(steps.map(({ seat }) => seat));
  if (seats.size > 1) {
    return [...seats].map(seat => ({
      segments: steps.filter(step => step.seat === seat).map(({ segment }) => segment),
      last: steps.findLastIndex(step => step.seat === seat),
    }));
  }
  if (episode.leaves !== 'alternatives') return [{ segments: segments.map(({ id }) => id), last: steps.length - 1 }];
  const stepOf = new Map(steps.map(({ segment }, index) => [segment, index]));
  return leaves(segments).flatMap(leaf => {
    const ids = path(segments, leaf);
    const last = ids.flatMap(id => stepOf.get(id) ?? []).at(-1);
    return last === undefined ? [] : [{ segments: ids, last }];
  });
}

function lastOnly(steps: readonly Step[], value: number): number[] {
  return steps.map((_, k) => (k === steps.length - 1 ? value : 0));
}

function scaled(step: Step, factor: number): Step {
  const { reward, tokenRewards } = step;
  return {
    ...step,
    reward: factor * reward,
    ...(tokenRewards && { tokenRewards: tokenRewards.map(value => factor * value) }),
  };
}

/** The step with another reward, all of it on its last token. */
function atEnd({ tokenRewards: _, ...step }: Step, reward: number): Step {
  return { ...step, reward };
}

function withRewardsAtEnd(episode: Episode, rewards: readonly number[]): Episode {
  return { ...episode, steps: episode.steps.map((step, k) => atEnd(step, rewards[k]!)) };
}

/** Token rewards stay where they are: what is added stands on the last token. */
function withRewards(episode: Episode, rewards: readonly number[]): Episode {
  return { ...episode, steps: episode.steps.map((step, k) => ({ ...step, reward: rewards[k]! })) };
}
