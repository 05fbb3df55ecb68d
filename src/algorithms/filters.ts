import type { Episode, Step } from '../episode/episode.ts';
import { SOURCE, type Trajectory } from '../episode/trajectory.ts';

/**
 * What is not worth training on. Group filters look at the scores of all samples of a task; trajectory filters look at
 * one episode. Pure functions: what a rejection means (draw another group, mask, remove) is decided by the caller.
 */

/** Whether a group teaches something. @param scores of its episodes that did not fail */
export type GroupFilter = (scores: readonly number[]) => boolean;

/** Keeps groups whose mean score lies strictly between the bounds: neither hopeless nor solved. */
export function meanScoreWithin(low: number, high: number): GroupFilter {
  if (!(low < high)) throw new Error(`the range of mean scores must be ordered, low < high, got ${low} and ${high}`);
  return scores => {
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    return mean > low && mean < high;
  };
}

/**
 * Keeps groups whose scores differ: standard deviation (over n − 1) above `minimum`. This is what a group baseline
 * needs; a mean in an open range also passes groups in which every score is 0.5.
 */
export function scoreStdAbove(minimum: number): GroupFilter {
  if (!(minimum >= 0)) throw new Error(`the least standard deviation must be ≥ 0, got ${minimum}`);
  return scores => {
    if (scores.length < 2 || scores.every(score => score === scores[0])) return false;
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    const squares = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
    return Math.sqrt(squares / (scores.length - 1)) > minimum;
  };
}

/** Whether an episode should not be learned from. */
export type EpisodeFilter = (episode: Episode) => boolean;

/** An answer was cut off by a length limit, in whatever turn (overlong filtering). */
export function isTruncated(episode: Episode): boolean {
  const { outcome, steps } = episode;
  const byLimit = outcome.kind === 'truncated' && outcome.reason !== 'turns';
  return byLimit || steps.some(step => step.finishReason === 'length');
}

/**
 * Episodes with a void turn (SimpleTIR): one that neither calls a tool nor answers. What that means is known to the
 * environment, which supplies the detector; the same shape serves turns whose tool call failed.
 * Source: Xue et al., SimpleTIR, 3.3, https://arxiv.org/abs/2509.02479
 */
export function anyTurn(detect: (step: Step, episode: Episode) => boolean): EpisodeFilter {
  return episode => episode.steps.some(step => detect(step, episode));
}

/** Episodes in which at least `share` of the turns are such, 0 < share ≤ 1 (most tool calls failed). */
export function turnsAtLeast(share: number, detect: (step: Step, episode: Episode) => boolean): EpisodeFilter {
  if (!(share > 0 && share <= 1)) throw new Error(`the share of turns must be in (0, 1], got ${share}`);
  return episode => {
    const count = episode.steps.filter(step => detect(step, episode)).length;
    return count > 0 && count >= share * episode.steps.length;
  };
}

/**
 * Episodes in which one answer repeats itself: the share of its n-grams that occurred before in the same answer is
 * above `share`. Answers shorter than 2·n tokens never count.
 */
export function repeatsText(options: { readonly n: number; readonly share: number }): EpisodeFilter {
  const { n, share } = options;
  if (!(Number.isInteger(n) && n >= 1)) throw new Error(`n-grams need a whole n ≥ 1, got ${n}`);
  if (!(share >= 0 && share < 1)) throw new Error(`the share of repeated n-grams must be in [0, 1), got ${share}`);
  return episode =>
    episode.segments.some(({ source, tokens }) => source === 'policy' && repeatedShare(tokens, n) > share);
}

/** Share of n-grams that occurred before; 0 below 2·n tokens. */
export function repeatedShare(tokens: Int32Array, n: number): number {
  if (tokens.length < 2 * n) return 0;
  const total = tokens.length - n + 1;
  return (total - distinctNgrams(tokens, n)) / total;
}

/** Counts by a hash table of start positions, rolling hashes and exact comparison: linear in the number of tokens. */
function distinctNgrams(tokens: Int32Array, n: number): number {
  const total = tokens.length - n + 1;
  const mask = 2 ** Math.ceil(Math.log2(2 * total)) - 1;
  const starts = new Int32Array(mask + 1).fill(-1);
  const base = 0x01000193;
  let leaving = 1;
  let hash = 0;
  for (let t = 0; t < n - 1; t++) {
    hash = (Math.imul(hash, base) + tokens[t]!) | 0;
    leaving = Math.imul(leaving, base);
  }
  let distinct = 0;
  for (let start = 0; start < total; start++) {
    hash = (Math.imul(hash, base) + tokens[start + n - 1]!) | 0;
    // Multiplying spreads what differs in the low bits only.
    let slot = (Math.imul(hash, 0x9e3779b1) >>> 7) & mask;
    while (starts[slot]! >= 0 && !sameNgram(tokens, starts[slot]!, start, n)) slot = (slot + 1) & mask;
    if (starts[slot]! < 0) {
      starts[slot] = start;
      distinct++;
    }
    hash = (hash - Math.imul(leaving, tokens[start]!)) | 0;
  }
  return distinct;
}

function sameNgram(tokens: Int32Array, a: number, b: number, n: number): boolean {
  for (let i = 0; i < n; i++) if (tokens[a + i] !== tokens[b + i]) return false;
  return true;
}

/** Per trajectory [P]: 0 everywhere for the named episodes, which then stay in the baseline but not in the loss. */
export function maskEpisodes(
  trajectories: readonly Pick<Trajectory, 'episode' | 'sources'>[],
  masked: ReadonlySet<string>,
): Uint8Array[] {
  return trajectories.map(({ episode, sources }) => {
    let tokens = 0;
    for (const source of sources) if (source === SOURCE.policy) tokens++;
    return new Uint8Array(tokens).fill(masked.has(episode) ? 0 : 1);
  });
}
