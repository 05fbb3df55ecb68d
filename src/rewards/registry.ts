import { resolve } from 'node:path';
import type { Values } from '../options/option.ts';
import type { SandboxOptions } from '../sandbox/settings.ts';
import { codeReward } from './code.ts';
import type { codeRewardOptions } from './code-options.ts';
import type { RewardFunction } from './contracts.ts';
import { loadRewardFile } from './file.ts';
import type { mathRewardOptions } from './math/options.ts';
import { mathReward } from './math/reward.ts';

/** Of the rewards whose options a command has. */
type RewardValues = Partial<Values<typeof mathRewardOptions & typeof codeRewardOptions>>;

/** Rewards that have a name, and the beginning of the names of their options. */
const REWARDS: Readonly<Record<string, (values: RewardValues) => RewardFunction>> = {
  code: values =>
    codeReward({
      language: values['reward.code.language'] ?? 'python',
      credit: values['reward.code.credit'],
      totalTimeoutMs: values['reward.code.deadline'],
      sandbox: values['reward.code.sandbox'] as SandboxOptions | undefined, // read there, and refused if it is none
    }),
  math: values =>
    mathReward({
      ...defined('extract', values['reward.math.extract']),
      ...defined('precision', values['reward.math.precision']),
      ...defined('deadlineMs', values['reward.math.deadline']),
      ...defined('workers', values['reward.math.workers']),
    }),
};

/** The names that `reward.remote_url` knows; `./math` is a file of that name. */
export const rewardNames = (): string[] => Object.keys(REWARDS);

/**
 * The reward function of `reward.remote_url`: one of `rewardNames`, or that of a file.
 * @throws Error for an option of a reward that is not chosen, and as `loadRewardFile` does
 */
export async function chooseReward(name: string, values: RewardValues, cwd: string): Promise<RewardFunction> {
  checkRewardOptions(name, values);
  if (Object.hasOwn(REWARDS, name)) return REWARDS[name]!(values);
  return loadRewardFile(resolve(cwd, name));
}

/**
 * @param name of the reward that is chosen, if any
 * @throws Error for an option of another one: it would have no effect
 */
export function checkRewardOptions(name: string | undefined, values: RewardValues): void {
  for (const [option, value] of Object.entries(values)) {
    const [, owner] = /^reward\.([^.]+)\./.exec(option) ?? [];
    if (value === undefined || owner === undefined || !Object.hasOwn(REWARDS, owner) || owner === name) continue;
    throw new Error(`${option} has no effect without reward.remote_url ${owner}`);
  }
}

const defined = <K extends string, V>(key: K, value: V | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
