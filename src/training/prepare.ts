import { type Algorithm, behaviourLogprobs } from '../algorithms/algorithm.ts';
import { mismatch } from '../algorithms/corrections.ts';
import type { Learner } from '../engines/contracts.ts';
import type { EpisodeGroup } from '../rollout/groups.ts';
import { type Experience, toSequence, trajectoriesOf } from './experience.ts';

export interface PrepareOptions {
  readonly needs: Algorithm['needs'];
  /** Of sampling; the learner divides its logits by it. */
  readonly temperature: number;
  /** KL coefficient now. */
  readonly beta?: number | undefined;
}

/**
 * The groups as experience: trajectories with what the learner and its frozen reference have to say about them before
 * the first update. Metrics say how far sampler and learner are apart; with equal weights that is rounding alone.
 */
export async function prepare(
  groups: readonly EpisodeGroup[],
  learner: Learner,
  { needs, temperature, beta }: PrepareOptions,
): Promise<{ readonly experience: Experience; readonly metrics: Readonly<Record<string, number>> }> {
  const trajectories = trajectoriesOf(groups);
  const sequences = trajectories.map(toSequence);
  const batch = { sequences, temperature };
  const proximal = needs.proximal ? (await learner.forward(batch)).logprobs : undefined;
  const reference = needs.reference ? (await learner.forward(batch, { weights: 'reference' })).logprobs : undefined;
  return {
    experience: { trajectories, sequences, proximal, reference, beta },
    metrics: proximal ? mismatch(trajectories.map(behaviourLogprobs), proximal) : {},
  };
}
