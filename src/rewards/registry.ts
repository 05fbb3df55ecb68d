import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Awaitable } from '../envs/contracts.ts';
import { messageOf } from '../episode/failure.ts';
import type { Values } from '../options/option.ts';
import type { SandboxOptions } from '../sandbox/settings.ts';
import { codeReward } from './code.ts';
import type { codeRewardOptions } from './code-options.ts';
import type { RewardFunction } from './contracts.ts';
import { rewardThreads } from './file/threads.ts';
import { judgeReward } from './judge/judge.ts';
import type { judgeRewardOptions } from './judge/options.ts';
import type { mathRewardOptions } from './math/options.ts';
import { mathReward } from './math/reward.ts';
import { remoteReward } from './remote.ts';
import type { remoteRewardOptions } from './remote-options.ts';

/** Of the rewards whose options a command has. */
type RewardValues = Partial<
  Values<typeof mathRewardOptions & typeof codeRewardOptions & typeof judgeRewardOptions & typeof remoteRewardOptions>
>;

/** Rewards that have a name, and the beginning of the names of their options. */
const REWARDS: Readonly<Record<string, (values: RewardValues, place: Place) => Awaitable<RewardFunction>>> = {
  code: values =>
    codeReward({
      language: values['reward.code.language'] ?? 'python',
      credit: values['reward.code.credit'],
      totalTimeoutMs: values['reward.code.deadline'],
      sandbox: values['reward.code.sandbox'] as SandboxOptions | undefined, // read there, and refused if it is none
    }),
  judge: judgeOf,
  math: values =>
    mathReward({
      ...defined('extract', values['reward.math.extract']),
      ...defined('precision', values['reward.math.precision']),
      ...defined('deadlineMs', values['reward.math.deadline']),
      ...defined('workers', values['reward.math.workers']),
    }),
};

/** Where the user is: relative paths start at `cwd`, keys are in `env`. */
export interface Place {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Takes the lines that a reward file prints; they go nowhere when not given. */
  readonly print?: ((line: string) => void) | undefined;
  /** Entry of the thread of a reward file; one that knows no package names when not given. */
  readonly threadEntry?: URL | undefined;
}

/**
 * The reward function of `reward.remote_url`: one of `REWARDS` by its name, HTTP servers by their URLs, separated by
 * commas, or that of a file (`./math`).
 * @throws Error for an option of a reward that is not chosen, and as `rewardThreads` does
 */
export async function chooseReward(
  name: string,
  values: RewardValues,
  { cwd, env, print, threadEntry }: Place,
): Promise<RewardFunction> {
  if (Object.hasOwn(REWARDS, name)) return REWARDS[name]!(values, { cwd, env });
  if (isServers(name)) return serversOf(name, values, env ?? {});
  return rewardThreads({ path: resolve(cwd, name), print, entry: threadEntry });
}

const isServers = (name: string) => /^https?:\/\//i.test(name);

function serversOf(name: string, values: RewardValues, env: NonNullable<Place['env']>): RewardFunction {
  const urls = name.split(',').map(one => one.trim());
  const bad = urls.find(url => !isServers(url) || !URL.canParse(url));
  if (bad !== undefined) {
    throw new Error(
      `reward.remote_url: "${bad}" is no URL; servers are given as http://host:port/get_reward, separated by commas`,
    );
  }
  return remoteReward({
    urls,
    key: keyOf('reward.remote.key_env', values, env),
    timeoutMs: values['reward.remote.timeout'],
    attempts: values['reward.remote.attempts'],
    maxBatch: values['reward.remote.max_batch'],
    concurrency: values['reward.remote.concurrency'],
  });
}

async function judgeOf(values: RewardValues, { cwd, env }: Place): Promise<RewardFunction> {
  const { 'reward.judge.url': url, 'reward.judge.model': model } = values;
  if (url === undefined || model === undefined) {
    const missing = url === undefined ? 'reward.judge.url (http://host:port/v1)' : 'reward.judge.model';
    throw new Error(`the reward judge needs ${missing}`);
  }
  return judgeReward({
    urls: url.split(',').map(one => one.trim()),
    model,
    key: keyOf('reward.judge.key_env', values, env ?? {}),
    rubric: await textOf('reward.judge.rubric', values, cwd),
    template: await textOf('reward.judge.template', values, cwd),
    min: values['reward.judge.min'],
    max: values['reward.judge.max'],
    temperature: values['reward.judge.temperature'],
    cacheSize: values['reward.judge.cache_size'],
    concurrency: values['reward.judge.concurrency'],
    timeoutMs: values['reward.judge.timeout'],
    attempts: values['reward.judge.attempts'],
  });
}

/** The text of an option, or of the file that it names as `@file`. */
async function textOf(
  option: 'reward.judge.rubric' | 'reward.judge.template',
  values: RewardValues,
  cwd: string,
): Promise<string | undefined> {
  const given = values[option];
  if (!given?.startsWith('@')) return given;
  let text: string;
  try {
    text = (await readFile(resolve(cwd, given.slice(1)), 'utf8')).trim();
  } catch (error) {
    throw new Error(`${option} ${given}: ${messageOf(error)}`, { cause: error });
  }
  if (text === '') throw new Error(`${option} ${given}: the file is empty`);
  return text;
}

function keyOf(
  option: 'reward.remote.key_env' | 'reward.judge.key_env',
  values: RewardValues,
  env: NonNullable<Place['env']>,
): string | undefined {
  const variable = values[option];
  const key = variable === undefined ? undefined : env[variable];
  if (variable === undefined || key) return key;
  throw new Error(`${option} is ${variable}, and this environment variable is not set`);
}

/**
 * @param names of the rewards that are chosen, if any
 * @throws Error for an option of another one: it would have no effect
 */
export function checkRewardOptions(names: readonly string[], values: RewardValues): void {
  for (const [option, value] of Object.entries(values)) {
    const [, owner] = /^reward\.([^.]+)\./.exec(option) ?? [];
    if (value === undefined || owner === undefined) continue;
    if (owner === 'remote') {
      if (names.some(isServers)) continue;
      throw new Error(`${option} has no effect without reward.remote_url http://…`);
    }
    if (!Object.hasOwn(REWARDS, owner) || names.includes(owner)) continue;
    throw new Error(`${option} has no effect without reward.remote_url ${owner}`);
  }
}

const defined = <K extends string, V>(key: K, value: V | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
