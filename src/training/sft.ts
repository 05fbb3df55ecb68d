import { tokenMean } from '../algorithms/aggregate.ts';
import { likelihoodLoss } from '../algorithms/losses/likelihood.ts';
import type { Rows } from '../data/rows.ts';
import type { Learner, LearnerSequence } from '../engines/contracts.ts';
import { refuseNonFinite } from './non-finite.ts';
import { batches, type SupervisedOptions, type SupervisedStep, supervised } from './supervised.ts';

/** A demonstration: its sequences stay together in a batch (conversations.ts makes them). */
export type Demonstration = readonly LearnerSequence[];

export interface SftOptions extends SupervisedOptions<Demonstration> {
  readonly learner: Learner;
}

const LOSS = likelihoodLoss();

/**
 * Supervised fine-tuning: the mean negative log-likelihood of the predicted tokens of each batch is minimised. Metrics:
 * train/gpt_loss and eval/gpt_loss, this mean; train/tokens.
 */
export function sft(options: SftOptions): AsyncGenerator<SupervisedStep, undefined> {
  const { learner, batchSize } = options;
  const job = {
    trainee: learner,
    learn: async (batch: readonly Demonstration[]) => {
      const sequences = batch.flat();
      const counts = sequences.map(predicted);
      const inputs = { weights: tokenMean(counts) };
      const metrics = await learner.forwardBackward({ sequences, temperature: 1, inputs }, LOSS);
      await refuseNonFinite(learner, metrics);
      return { gpt_loss: metrics.gpt_loss!, tokens: counts.reduce((sum, count) => sum + count, 0) };
    },
    evaluate: async (examples: Rows<Demonstration>) => ({ gpt_loss: await meanLoss(learner, examples, batchSize) }),
  };
  return supervised(job, options);
}

/** Mean negative log-likelihood of the predicted tokens of all examples, every token counting the same. */
export async function meanLoss(learner: Learner, examples: Rows<Demonstration>, batchSize: number): Promise<number> {
  let sum = 0;
  let tokens = 0;
  for (const batch of batches(examples, batchSize)) {
    const { logprobs } = await learner.forward({ sequences: batch.flat(), temperature: 1 });
    for (const row of logprobs) {
      tokens += row.length;
      for (const logprob of row) sum -= logprob;
    }
  }
  return sum / tokens;
}

function predicted({ predict }: LearnerSequence): number {
  return predict.reduce((count, flag) => count + flag, 0);
}
