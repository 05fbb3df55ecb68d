import type { Executor } from '../agents/contracts.ts';
import { loadAgentFile } from '../agents/file.ts';
import { historyFromOptions, type historyOptions } from '../agents/history-options.ts';
import { multiTurn } from '../agents/multi-turn.ts';
import type { nemoGymOptions } from '../agents/nemo-gym/options.ts';
import type { agentOptions } from '../agents/options.ts';
import { loadRegistrations } from '../agents/queue/file.ts';
import type { queueOptions } from '../agents/queue/options.ts';
import { queueAgent } from '../agents/queue/queue-agent.ts';
import { agentMaker, serviceMaker } from '../agents/queue/registry.ts';
import { recordedFromOptions, type recordedOptions } from '../agents/recorded/options.ts';
import { scoredAnswer } from '../agents/scored.ts';
import { singleTurn } from '../agents/single-turn.ts';
import { toolUseFromOptions, type toolUseOptions } from '../agents/tools/options.ts';
import { toolAgent } from '../agents/tools/tool-agent.ts';
import type { ToolUseOptions } from '../agents/tools/tool-use.ts';
import { searchFromOptions, type searchOptions } from '../agents/tree/options.ts';
import { type TreeSearchOptions, treeSearch } from '../agents/tree/tree-search.ts';
import { ConfigError } from '../config/error.ts';
import type { McpServerInput } from '../envs/clients/mcp/config.ts';
import { readMcpFile } from '../envs/clients/mcp/file.ts';
import type { mcpOptions } from '../envs/clients/mcp/options.ts';
import { mcpTools } from '../envs/clients/mcp/tools.ts';
import { interpreterTool } from '../envs/code/interpreter-tool.ts';
import type { Awaitable, EnvironmentFactory } from '../envs/contracts.ts';
import { messageOf } from '../episode/failure.ts';
import type { Values } from '../options/option.ts';
import type { RewardFunction } from '../rewards/contracts.ts';
import type { agentChoiceOptions, rolloutOptions } from '../rollout/options.ts';
import type { AgentOptions } from '../train.ts';
import type { rlTrainOptions, trainOptions } from '../training/options.ts';
import { openChosen } from './environments.ts';
import { chooseNemoGym, lostNemoGymOption, usesNemoGym } from './nemo-gym.ts';
import {
  openReward,
  type Place,
  type RewardSource,
  type RewardValues,
  refuseStrayRewardOptions,
  rewardSources,
  withReward,
} from './rewards.ts';

type ChoiceValues = Values<
  typeof agentChoiceOptions &
    typeof queueOptions &
    typeof mcpOptions &
    typeof nemoGymOptions &
    typeof historyOptions &
    typeof toolUseOptions &
    typeof recordedOptions
> &
  RewardValues;

/** Other options that choose an agent, beside those that choose a reward. */
const CHOICES = ['agent.env', 'agent.type', 'train.agent_func_path'] as const;

/** What of an attempt is not the agent's own to say. */
interface Shape {
  readonly search: TreeSearchOptions | undefined;
  readonly history: ReturnType<typeof historyFromOptions>;
  readonly tools: ToolUseOptions | undefined;
  readonly recorded: ReturnType<typeof recordedFromOptions>;
}

/** The agent that the options choose. @param searched may make trees of its attempts, where they are turns */
export async function chooseAgent(
  values: ChoiceValues,
  place: Place,
  searched?: Values<typeof searchOptions>,
): Promise<Executor> {
  const { cwd } = place;
  const shape = {
    search: searched && read(() => searchFromOptions(searched)),
    history: read(() => historyFromOptions(values)),
    tools: read(() => toolUseFromOptions(values, interpreters)),
    recorded: recordedFromOptions(values),
  };
  const { search, history, tools } = shape;
  read(() => refuseStrayRewardOptions(values));
  if (values['env.mcp.servers'] !== undefined || values['env.mcp.config'] !== undefined) {
    return chooseMcpAgent(values, place, shape);
  }
  if (usesNemoGym(values)) {
    const others = [...CHOICES.filter(name => values[name] !== undefined), ...rewardSources(values)];
    return fitting(await chooseNemoGym(values, others), shape);
  }
  const stray = lostNemoGymOption(values);
  if (stray !== undefined)
    throw new ConfigError([`${stray} is for a server that env.nemo_gym.url names; none is given`]);
  if (values['agent.type'] !== undefined) return chooseQueueAgent(values, cwd, shape);
  const lost = (['env.type', 'agent.args', 'env.args'] as const).find(
    name => Object.keys(values[name] ?? {}).length > 0,
  );
  if (lost !== undefined) throw new ConfigError([`${lost} is for agent.type, which is not given`]);
  const { 'agent.env': env, 'train.agent_func_path': file } = values;
  const sources = rewardSources(values);
  const given = [
    ...(['agent.env', 'train.agent_func_path'] as const).filter(name => values[name] !== undefined),
    ...sources,
  ];
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none is' : `${given.join(' and ')} are`;
    throw new ConfigError([
      `exactly one of agent.env, train.agent_func_path, reward.remote_url, reward.model_name_or_path and reward.mixture says what the policy is rewarded for; ${found} given`,
    ]);
  }
  try {
    const play = (factory: EnvironmentFactory) =>
      search ? treeSearch(factory, search) : multiTurn(factory, { ...history, tools });
    if (env !== undefined) {
      const { make } = await openChosen({ name: env, parameters: values['agent.env_parameters'] }, cwd);
      return fitting(play(make), shape);
    }
    const [source] = sources;
    if (source !== undefined) {
      return await rewarded(source, values, place, reward =>
        fitting(search ? treeSearch(scoredAnswer(reward), search) : singleTurn({ reward }), shape),
      );
    }
    return fitting(await loadAgentFile(file!, play, cwd, shape.recorded), shape);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

/** The agent and the environment service of `agent.type` and `env.type`, registered by the file where one is named. */
async function chooseQueueAgent(values: ChoiceValues, cwd: string, shape: Shape): Promise<Executor> {
  const { 'agent.type': agent, 'env.type': service, 'train.agent_func_path': file } = values;
  const others = [...(values['agent.env'] === undefined ? [] : ['agent.env']), ...rewardSources(values)];
  if (others.length > 0) throw new ConfigError([`agent.type brings its own reward: leave out ${others.join(' and ')}`]);
  if (service === undefined) throw new ConfigError(['agent.type needs env.type, the environment that it talks to']);
  try {
    if (file !== undefined) await loadRegistrations(file, cwd);
    const environment = serviceMaker(service, values['env.args']);
    return fitting(queueAgent({ agent: agentMaker(agent!, values['agent.args']), environment }), shape);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

/** The policy calls the tools of the servers of `env.mcp.*`; the reward file scores what it ends with. */
async function chooseMcpAgent(values: ChoiceValues, place: Place, shape: Shape): Promise<Executor> {
  const { cwd } = place;
  const { 'env.mcp.servers': servers, 'env.mcp.config': file } = values;
  const option = servers === undefined ? 'env.mcp.config' : 'env.mcp.servers';
  const others = (['agent.env', 'agent.type', 'train.agent_func_path'] as const).filter(
    name => values[name] !== undefined,
  );
  if (others.length > 0) throw new ConfigError([`${option} makes a tool agent: leave out ${others.join(' and ')}`]);
  if (servers !== undefined && file !== undefined) {
    throw new ConfigError(['env.mcp.servers and env.mcp.config say the same: leave out one']);
  }
  const [source, ...more] = rewardSources(values);
  if (source === undefined) {
    throw new ConfigError([
      `${option} needs what scores the episodes: reward.remote_url, or a reward model by reward.model_name_or_path`,
    ]);
  }
  if (more.length > 0)
    throw new ConfigError([`${source} and ${more.join(' and ')} both score the episodes: leave out all but one`]);
  try {
    return await rewarded(source, values, place, async reward => {
      const given = servers ?? (await readMcpFile(file!, cwd));
      const tools = await mcpTools(given as Record<string, McpServerInput>, cwd);
      return fitting(toolAgent({ tools, reward, ...shape.history }), shape, 'tool');
    });
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

/** The executor that `make` builds on the reward, which is closed with it, or at once where there is none. */
async function rewarded(
  source: RewardSource,
  values: ChoiceValues,
  place: Place,
  make: (reward: RewardFunction) => Awaitable<Executor>,
): Promise<Executor> {
  const reward = await openReward(source, values, place);
  try {
    return withReward(await make(reward), reward);
  } catch (error) {
    await reward.close?.();
    throw error;
  }
}

/** What options say. @throws ConfigError for what they say wrong */
function read<T>(options: () => T): T {
  try {
    return options();
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

const interpreters: Parameters<typeof toolUseFromOptions>[1] = (names, sandbox) =>
  names.map(language => interpreterTool({ language, sandbox }));

/** What the turns of an agent go by; `tools` where those of a tool agent do too. */
const TURN_OPTIONS = {
  fold: { option: 'agent.fold', tools: true },
  keep: { option: 'agent.history', tools: true },
  observations: { option: 'agent.observation', tools: false },
  track: { option: 'agent.episode_tracking', tools: false },
} as const satisfies Record<keyof Shape['history'], unknown>;

/** Refuses what would have no effect on the executor: one of the user's own has its own way of making attempts. */
function fitting(
  executor: Executor,
  { search, history, tools, recorded }: Shape,
  remembering = 'multi-turn',
): Executor {
  if (search !== undefined && executor.name !== 'tree') {
    throw new Error(
      `agent.search.strategy makes trees of turns with an environment, and this agent is '${executor.name}'; leave it out`,
    );
  }
  for (const own of Object.keys(history) as (keyof typeof TURN_OPTIONS)[]) {
    const { option, tools } = TURN_OPTIONS[own];
    if (executor.name === 'multi-turn' || (tools && executor.name === remembering)) continue;
    throw new Error(
      `${option} is for chains of turns with an environment${tools ? ', or with tools of servers' : ''}, and this agent is '${executor.name}'; leave it out`,
    );
  }
  if (tools !== undefined && executor.name !== 'multi-turn') {
    throw new Error(
      `agent.tools are for chains of turns with an environment, and this agent is '${executor.name}'; leave them out`,
    );
  }
  if (Object.keys(recorded).length > 0 && executor.name !== 'recorded') {
    throw new Error(
      `agent.models and agent.strict are for the program of a recorded agent, and this agent is '${executor.name}'; leave them out`,
    );
  }
  return executor;
}

type RunValues = Values<
  typeof agentOptions &
    Pick<
      typeof rolloutOptions,
      | 'rollout.max_new_tokens'
      | 'rollout.temperature'
      | 'rollout.top_p'
      | 'rollout.top_k'
      | 'rollout.min_p'
      | 'rollout.stop'
      | 'rollout.include_stop_str_in_output'
    > &
    Pick<typeof trainOptions, 'train.seed'> &
    Pick<typeof rlTrainOptions, 'train.full_determinism_enable'>
>;

/** How episodes are run, as the options say. */
export function agentRun(
  values: RunValues,
): Pick<AgentOptions, 'sampling' | 'includeStop' | 'limits' | 'seed' | 'deterministic'> {
  return {
    sampling: {
      temperature: values['rollout.temperature'],
      topP: values['rollout.top_p'],
      topK: values['rollout.top_k'],
      minP: values['rollout.min_p'],
      stopStrings: [values['rollout.stop']].flat(),
    },
    includeStop: values['rollout.include_stop_str_in_output'],
    limits: {
      maxTurns: values['agent.max_turns'],
      maxNewTokens: values['rollout.max_new_tokens'],
      maxTokens: values['data.max_len'],
      callTimeoutMs: values['agent.call_timeout_ms'],
      episodeTimeoutMs: values['agent.timeout_ms'],
    },
    seed: values['train.seed'],
    deterministic: values['train.full_determinism_enable'],
  };
}
