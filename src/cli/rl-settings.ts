import type { Algorithm } from '../algorithms/algorithm.ts';
import { curationFromOptions, groupFilterFromOptions, needs } from '../algorithms/curation-options.ts';
import { algorithmFromOptions } from '../algorithms/options.ts';
import { ConfigError } from '../config/error.ts';
import type { rlOptions } from '../config/rl.ts';
import { messageOf } from '../episode/failure.ts';
import type { Values } from '../options/option.ts';
import { checkChoice } from '../rollout/choose.ts';
import { overlapFromOptions } from '../rollout/overlap-options.ts';
import { checkedSelection } from '../rollout/selection.ts';
import type { TrainOptions } from '../train.ts';
import { refuseSenseless } from '../training/combinations.ts';
import type { CriticOptions } from '../training/critic.ts';
import { rewardSources } from './rewards.ts';

export type RlValues = Values<typeof rlOptions>;

type Settings = Pick<
  TrainOptions,
  | 'algorithm'
  | 'curation'
  | 'selection'
  | 'reference'
  | 'turnRows'
  | 'pipeline'
  | 'groupSize'
  | 'groupsPerStep'
  | 'maxFailureRate'
  | 'optimizer'
> & { readonly critic?: CriticOptions };

/**
 * What the flags say about learning.
 * @throws ConfigError for a combination that makes no sense, with the reason
 */
export function settingsOf(values: RlValues): Settings {
  try {
    const settings: Settings = {
      algorithm: algorithmFromOptions(values, {
        maxNewTokens: values['rollout.max_new_tokens'],
        quantizedSampler: quantizes(values),
      }),
      curation: curationFromOptions(values, { answerLength: answerLength(values) }),
      selection: selectionOf(values),
      reference: referenceOf(values),
      turnRows: values['train.turn_rows_enable'],
      pipeline: pipelineOf(values),
      groupSize: values['rollout.n_samples_per_prompt'],
      groupsPerStep: values['rollout.batch_size'],
      maxFailureRate: values['rollout.max_failure_rate'],
      optimizer: {
        learningRate: values['actor.adam.lr'],
        schedule: values['actor.lr_scheduler'],
        warmupRatio: values['actor.lr_warmup_ratio'],
        minLrRatio: values['actor.min_lr_ratio'],
        batchSize: values['train.batch_size'],
        epochs: values['train.max_epochs'],
      },
    };
    const { algorithm, groupSize = 1, turnRows = false, reference } = settings;
    const critic = algorithm.needs.critic || criticOptionGiven(values);
    refuseSenseless({ algorithm, groupSize, turnRows, reference, critic });
    return { ...settings, ...(critic && { critic: criticOf(values) }) };
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

const quantizes = (values: RlValues) => values['rollout.dtype'] !== 'float32';

/** What a run that samples in other arithmetic than it learns in is told, if it does. */
export function samplingRemark(values: RlValues, { correction, ratioAgainst }: Algorithm): string | undefined {
  if (!quantizes(values)) return undefined;
  const difference = `sampling in ${values['rollout.dtype']}, learning in float32: `;
  if (correction !== undefined) {
    return `${difference}${correction.type} with bounds ${correction.low} and ${correction.high} corrects for it; train/vllm_kl and train/mismatch_max show it`;
  }
  if (ratioAgainst !== 'proximal') return `${difference}the ratio against ${ratioAgainst} corrects for it`;
  return `${difference}nothing corrects for it, because algo.advantage.is_correction_enable is off; train/vllm_kl and train/mismatch_max show it`;
}

function pipelineOf(values: RlValues): TrainOptions['pipeline'] {
  const groups = values['rollout.batch_size'];
  const { overlap, sleep } = overlapFromOptions(values, groups);
  const choice = { overlap, sleep: overlap ? undefined : sleep };
  checkChoice(choice, {
    groups,
    deterministic: values['train.full_determinism_enable'],
    oversampling: values['rollout.oversampling'] !== undefined,
    evaluatesAverage: false,
  });
  return choice;
}

/** Most tokens of the policy in an episode, where each has one answer. */
function answerLength(values: RlValues): number | undefined {
  return rewardSources(values).length === 0 ? undefined : values['rollout.max_new_tokens'];
}

function selectionOf(values: RlValues): TrainOptions['selection'] {
  const filter = groupFilterFromOptions(values, values['rollout.n_samples_per_prompt']);
  const oversampling = values['rollout.oversampling'];
  const maxOversampling = values['rollout.max_oversampling'];
  if (filter === undefined) {
    const given = { 'rollout.oversampling': oversampling, 'rollout.max_oversampling': maxOversampling };
    needs('algo.dynamic_filtering_enable', given);
    return undefined;
  }
  checkedSelection({ accepts: () => true, oversampling, maxOversampling });
  return { filter, oversampling, maxOversampling };
}

function referenceOf(values: RlValues): TrainOptions['reference'] {
  const { 'ref.update_steps': every, 'ref.ema_beta': beta } = values;
  if (beta && (values['ds.lora.rank'] > 0 || values['ds.lora.adapter'] !== undefined)) {
    throw new Error(
      `ref.ema_beta is ${beta}, and under LoRA there is no moving average: the mean of two adapters is none of the same rank; leave it out to copy the policy`,
    );
  }
  return every === undefined && beta === undefined ? undefined : { every, beta };
}

function criticOptionGiven(values: RlValues): boolean {
  return Object.entries(values).some(([name, value]) => name.startsWith('critic.') && value !== undefined);
}

function criticOf(values: RlValues): CriticOptions {
  return {
    learningRate: values['critic.adam.lr'],
    schedule: values['critic.lr_scheduler'] ?? values['actor.lr_scheduler'],
    warmupRatio: values['critic.lr_warmup_ratio'] ?? values['actor.lr_warmup_ratio'],
    minLrRatio: values['critic.min_lr_ratio'] ?? values['actor.min_lr_ratio'],
    valueClip: values['critic.value_clip'],
    freezingSteps: values['critic.freezing_steps'],
  };
}
