import { type PairwiseType, pairwiseLoss } from '../algorithms/losses/pairwise.ts';
import { pairwiseInputs } from '../algorithms/pair-inputs.ts';
import type { Rows } from '../data/rows.ts';
import type { Critic } from '../engines/contracts.ts';
import { scoredSequence } from '../engines/scored.ts';
import { refuseNonFinite } from './non-finite.ts';
import { type PreferencePair, sequencesOf } from './preferences.ts';
import { batches, type SupervisedOptions, type SupervisedStep, supervised } from './supervised.ts';

export interface RewardModelOptions extends SupervisedOptions<PreferencePair> {
  /** The model with the value head: what it says after the last token is the reward of a sequence. */
  readonly critic: Critic;
  /** sigmoid when not given. */
  readonly loss?: PairwiseType | undefined;
}

/** What a reward model says about held-out pairs. `reward_mean` and `reward_std` are over both answers of all pairs. */
export type RewardModelEvaluation = Readonly<
  Record<'loss' | 'acc' | 'chosen_reward' | 'reject_reward' | 'reward_mean' | 'reward_std', number>
>;

/** No standard deviation that rewards are divided by is smaller. */
const SMALLEST_DEVIATION = 1e-8;

/**
 * Trains a reward model on pairs (pairwiseLoss). Metrics: train/ and eval/ loss, acc, chosen_reward, reject_reward;
 * train/tokens; eval/reward_mean and eval/reward_std, by which rewards can be normalised.
 */
export function trainRewardModel(options: RewardModelOptions): AsyncGenerator<SupervisedStep, undefined> {
  const { critic, loss: type, batchSize } = options;
  const loss = pairwiseLoss({ ...(type && { type }) });
  const job = {
    trainee: critic,
    learn: async (pairs: readonly PreferencePair[]) => {
      const sequences = scored(pairs);
      const inputs = pairwiseInputs(pairs.map(({ margin }) => margin));
      const metrics = await critic.forwardBackward({ sequences, temperature: 1, inputs, together: 2 }, loss);
      await refuseNonFinite(critic, metrics);
      return { ...metrics, tokens: sequences.reduce((sum, { tokens }) => sum + tokens.length - 1, 0) };
    },
    evaluate: (pairs: Rows<PreferencePair>) => evaluateRewardModel(critic, pairs, { type, batchSize }),
  };
  return supervised(job, options);
}

/** @param batchSize pairs computed together */
export async function evaluateRewardModel(
  critic: Pick<Critic, 'values'>,
  pairs: Rows<PreferencePair>,
  { type = 'sigmoid', batchSize }: { readonly type?: PairwiseType | undefined; readonly batchSize: number },
): Promise<RewardModelEvaluation> {
  const chosen: number[] = [];
  const rejected: number[] = [];
  let loss = 0;
  for (const batch of batches(pairs, batchSize)) {
    const values = await critic.values({ sequences: scored(batch), temperature: 1 });
    for (const [i, { margin }] of batch.entries()) {
      const [good, bad] = [values[2 * i]![0]!, values[2 * i + 1]![0]!];
      chosen.push(good);
      rejected.push(bad);
      loss += softplus(bad - good + (type === 'sigmoid' ? margin : 0));
    }
  }
  const all = [...chosen, ...rejected];
  const center = mean(all);
  const variance = mean(all.map(reward => (reward - center) ** 2));
  return {
    loss: loss / chosen.length,
    acc: mean(chosen.map((good, i) => (good > rejected[i]! ? 1 : 0))),
    chosen_reward: mean(chosen),
    reject_reward: mean(rejected),
    reward_mean: center,
    reward_std: Math.max(Math.sqrt(variance), SMALLEST_DEVIATION),
  };
}

function scored(pairs: readonly PreferencePair[]) {
  return sequencesOf(pairs).map(({ tokens }) => scoredSequence(tokens));
}

const softplus = (x: number) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
