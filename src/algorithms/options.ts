import { z } from 'zod';
import { options, type Values } from '../options/option.ts';
import { ESTIMATOR_NAMES, type EstimatorName, estimator } from './advantages/index.ts';
import { AGGREGATION_MODES, type Aggregation } from './aggregate.ts';
import { type Algorithm, createAlgorithm, RATIO_AGAINST } from './algorithm.ts';
import { LEAVES } from './attempts.ts';
import { CORRECTIONS, type Correction, DEFAULT_BOUNDS } from './corrections.ts';
import { KL_ESTIMATORS } from './kl.ts';
import { objective, POLICY_LOSSES } from './losses/index.ts';
import { unknownNameMessage } from './names.ts';
import { TIMES } from './returns.ts';

const named = <const T extends string>(kind: string, names: readonly T[]) =>
  z.enum(names, { error: issue => unknownNameMessage(kind, issue.input, names) });
const range = z.tuple([z.number(), z.number()]);

export const algorithmOptions = options({
  'algo.advantage.estimator': {
    schema: named('advantage estimator', ESTIMATOR_NAMES).default('group_norm' satisfies EstimatorName),
    help: 'How rewards become advantages; the default (GRPO) compares the samples of a task and needs no critic; gae has one, remax samples a greedy answer to each task, tree compares the branches of episodes that have several leaves',
    aliases: ['advantage_estimator'],
  },
  'algo.advantage.gamma': {
    schema: z.number().min(0).max(1).optional(),
    help: 'Discount of later rewards, per unit of algo.advantage.time; without it 0.95 for gigpo and 1 for all others',
    aliases: ['gamma'],
  },
  'algo.advantage.lambd': {
    schema: z.number().min(0).max(1).optional(),
    help: 'gae: how far rewards reach back past the estimates of the critic, per unit of algo.advantage.time; without it 1',
    aliases: ['lambd'],
  },
  'algo.advantage.leaves': {
    schema: named('reading of leaves', LEAVES).optional(),
    help: 'What the leaves of one episode are taken for: parts of one attempt (rewritten history, folded context), or alternatives (tree search). Without it what the episode says they are, and alternatives for tree',
  },
  'algo.advantage.time': {
    schema: named('unit of time', TIMES).default('turn'),
    help: 'What the discount counts: turns, or tokens of the policy; tokens of the environment never count',
  },
  'algo.advantage.no_std_norm': {
    schema: z.boolean().default(false),
    help: 'Do not divide by the standard deviation over the batch (reinforce, reinforce_baseline, gae)',
    aliases: ['no_advantage_std_norm'],
  },
  'algo.advantage.mean_norm': {
    schema: z.boolean().optional(),
    help: 'Subtract the mean over the batch; without it on for reinforce and gae and off for reinforce_baseline, where it would give groups of equal rewards an advantage',
  },
  'algo.advantage.is_correction_enable': {
    schema: z.boolean().optional(),
    help: 'Correct for the difference between the sampling and the training distribution; without it on where rollout.dtype is not float32 and actor.ratio_against is proximal, else off',
    aliases: ['enable_vllm_is_correction'],
  },
  'algo.advantage.is_correction_type': {
    schema: named('correction', CORRECTIONS).optional(),
    help: 'How it is corrected: weights per token, or tokens or sequences left out; without it tis',
  },
  'algo.advantage.is_correction_threshold': {
    schema: range.optional(),
    help: 'Lowest and highest ratio; for m2po the second number bounds the mean squared log-ratio. Without it that of the type: 0.5 and 5 (tis, icepop, seq-mask-tis), 0 and 5 (sequence-tis), 0.5 and 2 (sequence-reject), 0.99 and 1.01 (geometric-reject), 0 and 0.04 (m2po)',
    aliases: ['vllm_is_truncated_threshold'],
  },
  'algo.gigpo.step_weight': {
    schema: z.number().min(0).optional(),
    help: 'Weight of the comparison of turns taken in the same state; without it 1',
  },
  'algo.gigpo.norm': {
    schema: named('normalisation', ['mean', 'mean_std']).optional(),
    help: 'Subtract the mean of those compared, or also divide by their standard deviation; without it mean',
  },
  'algo.gigpo.similarity': {
    schema: z.number().gt(0).max(1).optional(),
    help: 'State keys at least so alike count as one state; without it only equal ones do',
  },
  'algo.kl.init_coef': {
    schema: z.number().min(0).default(0),
    help: 'Weight of the divergence from the initial policy; 0 runs no reference model',
    aliases: ['init_kl_coef'],
  },
  'algo.kl.target': {
    schema: z.number().positive().optional(),
    help: 'Divergence per token towards which the weight adapts; without it the weight is fixed',
    unit: 'nats',
    aliases: ['kl_target'],
  },
  'algo.kl.horizon': {
    schema: z.number().positive().default(10_000),
    help: 'Episodes over which an adapting weight changes by a fifth at most',
    unit: 'episodes',
    aliases: ['kl_horizon'],
  },
  'algo.kl.estimator': {
    schema: named('KL estimator', KL_ESTIMATORS).optional(),
    help: 'Without it k1 in the reward and k3 in the loss',
    aliases: ['kl_estimator'],
  },
  'algo.kl.use_loss': {
    schema: z.boolean().default(false),
    help: 'Put the divergence into the loss instead of the reward',
    aliases: ['use_kl_loss'],
  },
  'actor.policy_loss_type': {
    schema: named('policy loss', POLICY_LOSSES).default('ppo'),
    help: 'What a token costs',
    aliases: ['policy_loss_type'],
  },
  'actor.eps_clip': {
    schema: z.number().min(0).max(1).optional(),
    help: 'Clip range of the ratio; without it that of the loss: 0.2 (ppo), 0.0003 and 0.0004 (gspo), 1 and 4 (cispo)',
    aliases: ['eps_clip'],
  },
  'actor.eps_clip_low_high': {
    schema: range.optional(),
    help: 'Lower and upper clip range, when they differ (clip-higher)',
    aliases: ['eps_clip_low_high'],
  },
  'actor.dual_clip': {
    schema: z.number().gt(1).optional(),
    help: 'Bounds the loss of a token with a negative advantage by this many times the advantage (ppo)',
    aliases: ['dual_clip'],
  },
  'actor.entropy_coef': {
    schema: z.number().min(0).optional(),
    help: 'Weight of the entropy bonus; 0 only reports the entropy, without it it is not computed',
    unit: 'per nat',
    aliases: ['entropy_loss_coef'],
  },
  'actor.loss_aggregation': {
    schema: named('aggregation', AGGREGATION_MODES).optional(),
    help: 'token: every token counts the same; sequence: every episode; constant: divide by a fixed length. Without it constant for dr_grpo, sequence for gspo and sapo, token otherwise',
  },
  'actor.loss_length': {
    schema: z.int().min(1).optional(),
    help: 'The fixed length of constant aggregation; without it rollout.max_new_tokens',
    unit: 'tokens',
  },
  'actor.ratio_against': {
    schema: named('policy for the ratio', RATIO_AGAINST).default('proximal'),
    help: 'proximal: compute log-probs anew before each update; behaviour: use those of the sampler; loglinear: approximate the former from the latter by the age of the tokens',
  },
  'reward.clip_range': {
    schema: range.optional(),
    help: 'Bounds of the reward of a step, applied before rewards are compared; without it rewards stay as they are',
    aliases: ['reward_clip_range'],
  },
});

export type AlgorithmValues = Values<typeof algorithmOptions>;

/**
 * The algorithm that the flags describe.
 * @param context.maxNewTokens longest answer, the default length of constant aggregation
 * @param context.quantizedSampler whether the sampler computes in fewer bits than the learner
 * @throws Error for a combination that makes no sense, with the reason
 */
export function algorithmFromOptions(
  values: AlgorithmValues,
  context: { readonly maxNewTokens?: number | undefined; readonly quantizedSampler?: boolean | undefined } = {},
): Algorithm {
  const name = values['algo.advantage.estimator'];
  return createAlgorithm({
    name,
    estimator: estimator(name, {
      gamma: values['algo.advantage.gamma'],
      time: values['algo.advantage.time'],
      leaves: values['algo.advantage.leaves'],
      lambda: lambdaOf(name, values),
      whitening: whitening(name, values),
      ...gigpoOptions(name, values),
    }),
    objective: objective(values['actor.policy_loss_type'], {
      clip: clipRange(values),
      dualClip: values['actor.dual_clip'],
    }),
    aggregation: aggregation(values, context.maxNewTokens),
    kl: {
      coefficient: values['algo.kl.init_coef'],
      target: values['algo.kl.target'],
      horizon: values['algo.kl.horizon'],
      estimator: values['algo.kl.estimator'],
      placement: values['algo.kl.use_loss'] ? 'loss' : 'reward',
    },
    entropy: values['actor.entropy_coef'],
    correction: correction(values, context.quantizedSampler ?? false),
    ratioAgainst: values['actor.ratio_against'],
    rewardClip: values['reward.clip_range'],
  });
}

function clipRange(values: AlgorithmValues): readonly [low: number, high: number] | undefined {
  const clip = values['actor.eps_clip'];
  const both = values['actor.eps_clip_low_high'];
  if (clip !== undefined && both !== undefined) {
    throw new Error(`give actor.eps_clip (${clip}) or actor.eps_clip_low_high (${both.join(' ')}), not both`);
  }
  return both ?? (clip === undefined ? undefined : [clip, clip]);
}

/** Where the sampler computes in fewer bits than the learner, on-policy is not on-policy: there it is on by itself. */
function correction(values: AlgorithmValues, quantizedSampler: boolean): Correction | undefined {
  const given = values['algo.advantage.is_correction_type'];
  const bounds = values['algo.advantage.is_correction_threshold'];
  const asked = values['algo.advantage.is_correction_enable'];
  if (asked ?? (quantizedSampler && values['actor.ratio_against'] === 'proximal')) {
    const type = given ?? 'tis';
    const [low, high] = bounds ?? DEFAULT_BOUNDS[type];
    return { type, low, high };
  }
  if (given === undefined && bounds === undefined) return undefined;
  throw new Error(
    'algo.advantage.is_correction_type and is_correction_threshold have no effect without is_correction_enable',
  );
}

function whitening(name: string, values: AlgorithmValues) {
  const noStd = values['algo.advantage.no_std_norm'];
  const mean = values['algo.advantage.mean_norm'];
  if (name !== 'reinforce' && name !== 'reinforce_baseline' && name !== 'gae') {
    if (!noStd && mean === undefined) return undefined;
    throw new Error(
      `'${name}' is not normalised over the batch; algo.advantage.no_std_norm and mean_norm are for reinforce, reinforce_baseline and gae`,
    );
  }
  return { mean: mean ?? name !== 'reinforce_baseline', std: !noStd };
}

function lambdaOf(name: string, values: AlgorithmValues): number | undefined {
  const lambda = values['algo.advantage.lambd'];
  if (lambda !== undefined && name !== 'gae') {
    throw new Error(`algo.advantage.lambd is for the estimator 'gae', and the estimator is '${name}'`);
  }
  return lambda;
}

function gigpoOptions(name: string, values: AlgorithmValues) {
  const omega = values['algo.gigpo.step_weight'];
  const norm = values['algo.gigpo.norm'];
  const similarity = values['algo.gigpo.similarity'];
  if (name !== 'gigpo' && (omega ?? norm ?? similarity) !== undefined) {
    throw new Error(`the options algo.gigpo.* are for the estimator 'gigpo', and the estimator is '${name}'`);
  }
  return { omega, norm, similarity };
}

function aggregation(values: AlgorithmValues, maxNewTokens: number | undefined): Aggregation {
  const loss = values['actor.policy_loss_type'];
  const fallback =
    values['algo.advantage.estimator'] === 'dr_grpo'
      ? 'constant'
      : loss === 'gspo' || loss === 'sapo'
        ? 'sequence'
        : 'token';
  const mode = values['actor.loss_aggregation'] ?? fallback;
  if (mode !== 'constant') {
    if (values['actor.loss_length'] === undefined) return { mode };
    throw new Error(`actor.loss_length is for constant aggregation, and the aggregation is '${mode}'`);
  }
  const length = values['actor.loss_length'] ?? maxNewTokens;
  if (length === undefined) {
    throw new Error('constant aggregation divides by a fixed length: set actor.loss_length or rollout.max_new_tokens');
  }
  return { mode, length };
}
