import type { Executor } from '../agents/contracts.ts';
import type { Values } from '../options/option.ts';
import type { codeRewardOptions } from '../rewards/code-options.ts';
import type { RewardFunction } from '../rewards/contracts.ts';
import type { judgeRewardOptions } from '../rewards/judge/options.ts';
import type { mathRewardOptions } from '../rewards/math/options.ts';
import { type MixturePart, mixedReward, partName } from '../rewards/mixture.ts';
import type { rewardModelOptions } from '../rewards/model/options.ts';
import { checkRewardOptions, chooseReward, type Place as RewardPlace } from '../rewards/registry.ts';
import type { remoteRewardOptions } from '../rewards/remote-options.ts';
import { beside } from '../rewards/thread.ts';
import type { agentChoiceOptions } from '../rollout/options.ts';

/** Options that each say what scores answers. */
const SOURCES = ['reward.remote_url', 'reward.model_name_or_path', 'reward.mixture'] as const;
/** The part of a mixture that is the reward model. */
const MODEL = 'model';
export type RewardSource = (typeof SOURCES)[number];

export type RewardValues = Values<
  Pick<typeof agentChoiceOptions, 'reward.remote_url' | 'reward.mixture'> &
    typeof mathRewardOptions &
    typeof codeRewardOptions &
    typeof judgeRewardOptions &
    typeof remoteRewardOptions &
    typeof rewardModelOptions
>;

/** Where the user is, and what opens the reward model of `reward.model_name_or_path`. */
export interface Place extends RewardPlace {
  readonly openModel?: (() => Promise<RewardFunction>) | undefined;
}

/** The options that say what scores answers; more than one is too many. */
export function rewardSources(values: Partial<RewardValues>): RewardSource[] {
  const mixed = Object.hasOwn(values['reward.mixture'] ?? {}, MODEL);
  return SOURCES.filter(name => values[name] !== undefined && !(mixed && name === 'reward.model_name_or_path'));
}

/** @throws Error for an option of a reward that is not chosen: it would have no effect */
export function refuseStrayRewardOptions(values: RewardValues): void {
  const { 'reward.remote_url': one, 'reward.mixture': mixture = {} } = values;
  checkRewardOptions([...(one === undefined ? [] : [one]), ...Object.keys(mixture)], values);
  if (values['reward.model_name_or_path'] !== undefined) return;
  const stray = (['reward.model_revision', 'reward.max_len'] as const).find(name => values[name] !== undefined);
  const lost = stray ?? (values['reward.normalize_enable'] ? 'reward.normalize_enable' : undefined);
  if (lost !== undefined) throw new Error(`${lost} has no effect without reward.model_name_or_path`);
}

/** The reward of one of the `rewardSources`. @throws Error that names what is wrong with it */
export async function openReward(source: RewardSource, values: RewardValues, place: Place): Promise<RewardFunction> {
  if (source === 'reward.remote_url') return openNamed(values[source]!, values, place);
  if (source === 'reward.model_name_or_path') return openModel(source, place);
  const parts: Record<string, MixturePart> = {};
  try {
    for (const [name, weight] of Object.entries(values[source]!)) {
      const called = partName(name);
      if (Object.hasOwn(parts, called))
        throw new Error(`reward.mixture: two parts would be called ${called} in metrics`);
      if (name === MODEL && values['reward.model_name_or_path'] === undefined) {
        throw new Error('reward.mixture has the part model: say which by reward.model_name_or_path');
      }
      const reward = await (name === MODEL ? openModel(source, place) : openNamed(name, values, place));
      parts[called] = { reward, weight };
    }
    return mixedReward(parts);
  } catch (error) {
    await Promise.all(Object.values(parts).map(({ reward }) => reward.close?.()));
    throw error;
  }
}

const openNamed = (name: string, values: RewardValues, place: Place) =>
  chooseReward(name, values, { ...place, threadEntry: beside(import.meta.url, 'reward-worker') });

async function openModel(source: RewardSource, place: Place): Promise<RewardFunction> {
  if (place.openModel === undefined) throw new Error(`${source}: this command opens no reward model`);
  return place.openModel();
}

/** The executor, closing the reward that was opened for it when it is closed. */
export function withReward(executor: Executor, { close }: RewardFunction): Executor {
  if (close === undefined) return executor;
  return {
    ...executor,
    close: async () => {
      try {
        await executor.close?.();
      } finally {
        await close();
      }
    },
  };
}
