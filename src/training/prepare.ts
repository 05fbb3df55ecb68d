import { type Algorithm, behaviourLogprobs } from '../algorithms/algorithm.ts';
import { ofSeat } from '../algorithms/attempts.ts';
import { mismatch } from '../algorithms/corrections.ts';
import { maskEpisodes } from '../algorithms/filters.ts';
import type { Critic, Learner } from '../engines/contracts.ts';
import { type Episode, episodeReward } from '../episode/episode.ts';
import type { EpisodeGroup } from '../rollout/groups.ts';
import { type Experience, toSequence, trajectoriesOf } from './experience.ts';

export interface PrepareOptions {
  readonly needs: Algorithm['needs'];
  /** Of sampling; the learner divides its logits by it. */
  readonly temperature: number;
  /** KL coefficient now. */
  readonly beta?: number | undefined;
  /** Required when `needs.critic`. */
  readonly critic?: Critic | undefined;
  /** Ids of episodes whose tokens are left out of the loss. */
  readonly masked?: ReadonlySet<string> | undefined;
  /** One row for each turn. */
  readonly turnRows?: boolean | undefined;
}

/**
 * The groups as experience: trajectories with what the learner, its reference and the critic have to say about them
 * before the first update. Metrics say how far sampler and learner are apart; with equal weights that is rounding alone.
 */
export async function prepare(
  groups: readonly EpisodeGroup[],
  learner: Learner,
  { needs, temperature, beta, critic, masked, turnRows }: PrepareOptions,
): Promise<{ readonly experience: Experience; readonly metrics: Readonly<Record<string, number>> }> {
  const trajectories = trajectoriesOf(groups, turnRows);
  const sequences = trajectories.map(toSequence);
  const batch = { sequences, temperature };
  const values = needs.critic ? await critic?.values(batch) : undefined;
  const proximal = needs.proximal ? (await learner.forward(batch)).logprobs : undefined;
  const reference = needs.reference ? (await learner.forward(batch, { weights: 'reference' })).logprobs : undefined;
  const greedy = groups.flatMap(({ group, greedy }) => (greedy ? greedyReturns(group, greedy) : []));
  return {
    experience: {
      trajectories,
      sequences,
      proximal,
      reference,
      values,
      beta,
      keep: masked && masked.size > 0 ? maskEpisodes(trajectories, masked) : undefined,
      greedyReturns: greedy.length > 0 ? new Map(greedy) : undefined,
      proximalVersion: learner.version,
    },
    metrics: proximal ? mismatch(trajectories.map(behaviourLogprobs), proximal) : {},
  };
}

/** The return that the greedy attempt is a baseline with; one for each seat where there are several. */
function greedyReturns(group: string, greedy: Episode): (readonly [string, number])[] {
  const seats = new Set(greedy.steps.flatMap(({ seat }) => seat ?? []));
  if (seats.size === 0) return [[group, episodeReward(greedy)]];
  return [...seats].map(seat => {
    const steps = greedy.steps.filter(step => step.seat === seat);
    return [ofSeat(group, seat), steps.reduce((sum, { reward }) => sum + reward, 0)];
  });
}
