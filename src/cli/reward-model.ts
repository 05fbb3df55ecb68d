import { pick } from '../config/compose.ts';
import { ConfigError } from '../config/error.ts';
import { engineOptions } from '../engines/onnx/options.ts';
import { messageOf } from '../episode/failure.ts';
import { readRewardStatistics } from '../nn/checkpoint/reward-statistics.ts';
import type { Values } from '../options/option.ts';
import type { RewardFunction } from '../rewards/contracts.ts';
import type { rewardModelOptions } from '../rewards/model/options.ts';
import { modelReward } from '../rewards/model/reward.ts';
import { rewardScorer, type Scorer } from '../rewards/model/scorer.ts';
import type { rlTrainOptions } from '../training/options.ts';
import type { CommandContext } from './command.ts';
import { locateModel } from './model.ts';

/** Options of the engine that a reward model uses. */
export const rewardEngineOptions = pick(engineOptions, 'engine.threads', 'engine.device', 'train.max_tokens_per_gpu');

type Surroundings = Pick<CommandContext<Record<never, never>>, 'cwd' | 'stderr' | 'interrupt'>;

type RewardModelValues = Values<
  typeof rewardEngineOptions & Omit<typeof rewardModelOptions, 'reward.model_name_or_path'>
> & {
  readonly 'reward.model_name_or_path': string;
};

type RunValues = Values<
  typeof rewardEngineOptions & typeof rewardModelOptions & Pick<typeof rlTrainOptions, 'train.full_determinism_enable'>
>;

export interface OpenRewardModel {
  readonly scorer: Scorer;
  close(): Promise<void>;
}

/**
 * The reward model that the options name, in an engine of its own.
 * @throws ConfigError for a checkpoint that has no score head, or no statistics to normalise by
 */
export async function openRewardModel(values: RewardModelValues, context: Surroundings): Promise<OpenRewardModel> {
  const { onnxCritic } = await import('../engines/onnx/index.ts');
  const { loadRenderer } = await import('../text/chat-renderer.ts');
  const { readConfig } = await import('../nn/checkpoint/directory.ts');
  const name = values['reward.model_name_or_path'];
  const model = await locateModel(name, values['reward.model_revision'], context);
  if (readConfig(model).config.head !== 'score') {
    throw new ConfigError([
      `reward.model_name_or_path ${name} has no score head, so it would say nothing about answers: train one with tokenloop rm`,
    ]);
  }
  const normalize = values['reward.normalize_enable'] ? statisticsOf(model) : undefined;
  const renderer = await loadRenderer(model);
  const critic = await onnxCritic({
    model,
    threads: values['engine.threads'],
    device: values['engine.device'],
    maxTokens: values['train.max_tokens_per_gpu'],
    training: false,
  });
  try {
    const scorer = rewardScorer({ critic, renderer, normalize, maxTokens: values['reward.max_len'] });
    return { scorer, close: () => critic.close() };
  } catch (error) {
    await critic.close();
    throw error;
  }
}

/** It as the reward of a run, in which scores do not depend on their company where the run is to be repeatable. */
export async function openModelReward({
  values,
  ...surroundings
}: Surroundings & { readonly values: RunValues }): Promise<RewardFunction> {
  const name = values['reward.model_name_or_path']!;
  const { scorer, close } = await openRewardModel({ ...values, 'reward.model_name_or_path': name }, surroundings);
  const alone = values['train.full_determinism_enable'] && { maxBatch: 1 };
  return Object.assign(modelReward({ scorer, ...alone }), { close });
}

function statisticsOf(model: string): ReturnType<typeof readRewardStatistics> {
  try {
    return readRewardStatistics(model);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}
