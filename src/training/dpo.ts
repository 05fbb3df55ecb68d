import { type PreferenceOptions, preferenceLoss } from '../algorithms/losses/preference.ts';
import { evaluate } from '../algorithms/numeric.ts';
import { preferenceInputs } from '../algorithms/pair-inputs.ts';
import type { Rows } from '../data/rows.ts';
import type { Learner, LearnerSequence } from '../engines/contracts.ts';
import { refuseNonFinite } from './non-finite.ts';
import { type PreferencePair, sequencesOf } from './preferences.ts';
import { batches, type SupervisedOptions, type SupervisedStep, supervised } from './supervised.ts';

export interface DpoOptions extends SupervisedOptions<PreferencePair> {
  readonly learner: Learner;
  /** What the policy is held to; the learner's own reference, the policy that training started from, when not given. */
  readonly reference?: Pick<Learner, 'forward'> | undefined;
  readonly loss?: PreferenceOptions | undefined;
  /** Answers are compared by the means over their tokens instead of by sums; with IPO when not given. */
  readonly lengthNormalized?: boolean | undefined;
}

/**
 * Direct preference optimisation of a policy on pairs (preferenceLoss). Metrics: train/ and eval/ loss, acc,
 * chosen_reward, reject_reward and, where it counts, nll_loss; train/tokens.
 */
export function dpo(options: DpoOptions): AsyncGenerator<SupervisedStep, undefined> {
  const { learner, reference, batchSize } = options;
  const loss = preferenceLoss(options.loss);
  const mean = options.lengthNormalized ?? options.loss?.ipo ?? false;
  const referenceOf = async (sequences: readonly LearnerSequence[]) => {
    const batch = { sequences, temperature: 1 };
    const { logprobs } = await (reference?.forward(batch) ?? learner.forward(batch, { weights: 'reference' }));
    return logprobs;
  };
  const job = {
    trainee: learner,
    learn: async (pairs: readonly PreferencePair[]) => {
      const sequences = sequencesOf(pairs);
      const inputs = preferenceInputs(await referenceOf(sequences), { mean });
      const metrics = await learner.forwardBackward({ sequences, temperature: 1, inputs, together: 2 }, loss);
      await refuseNonFinite(learner, metrics);
      return { ...metrics, tokens: inputs.weights!.reduce((sum, { length }) => sum + length, 0) };
    },
    evaluate: async (pairs: Rows<PreferencePair>) => {
      const totals: Record<string, number> = {};
      for (const batch of batches(pairs, batchSize)) {
        const sequences = sequencesOf(batch);
        const { logprobs } = await learner.forward({ sequences, temperature: 1 });
        const inputs = preferenceInputs(await referenceOf(sequences), { mean, pairs: pairs.length });
        const found = evaluate(loss, {
          sequences: batch.map((_, i) => logprobs[2 * i]!.length + logprobs[2 * i + 1]!.length),
          logprobs: flat(logprobs),
          inputs: Object.fromEntries(Object.entries(inputs).map(([name, arrays]) => [name, flat(arrays)])),
        });
        for (const [name, value] of Object.entries({ loss: found.loss, ...found.metrics })) {
          totals[name] = (totals[name] ?? 0) + value;
        }
      }
      return totals;
    },
  };
  return supervised(job, options);
}

function flat(arrays: readonly Float32Array[]): number[] {
  return arrays.flatMap(array => [...array]);
}
