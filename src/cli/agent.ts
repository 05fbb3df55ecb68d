import { resolve } from 'node:path';
import type { Executor } from '../agents/contracts.ts';
import { loadAgentFile } from '../agents/file.ts';
import { multiTurn } from '../agents/multi-turn.ts';
import type { agentOptions } from '../agents/options.ts';
import { loadRegistrations } from '../agents/queue/file.ts';
import type { queueOptions } from '../agents/queue/options.ts';
import { queueAgent } from '../agents/queue/queue-agent.ts';
import { agentMaker, serviceMaker } from '../agents/queue/registry.ts';
import { scoredAnswer } from '../agents/scored.ts';
import { singleTurn } from '../agents/single-turn.ts';
import { toolAgent } from '../agents/tools/tool-agent.ts';
import { searchFromOptions, type searchOptions } from '../agents/tree/options.ts';
import { type TreeSearchOptions, treeSearch } from '../agents/tree/tree-search.ts';
import { ConfigError } from '../config/error.ts';
import type { mcpOptions } from '../envs/clients/mcp/options.ts';
import type { EnvironmentFactory } from '../envs/contracts.ts';
import { makeEnvironment } from '../envs/registry.ts';
import { messageOf } from '../episode/failure.ts';
import type { Values } from '../options/option.ts';
import { loadRewardFile } from '../rewards/file.ts';
import type { agentChoiceOptions, rolloutOptions } from '../rollout/options.ts';
import type { AgentOptions } from '../train.ts';
import type { rlTrainOptions, trainOptions } from '../training/options.ts';

/** The agent that the options choose. @param searched may make trees of its attempts, where they are turns */
export async function chooseAgent(
  values: Values<typeof agentChoiceOptions & typeof queueOptions & typeof mcpOptions>,
  cwd: string,
  searched?: Values<typeof searchOptions>,
): Promise<Executor> {
  const search = searched && searchOf(searched);
  if (values['env.mcp.servers'] !== undefined) return chooseMcpAgent(values, cwd, search);
  if (values['agent.type'] !== undefined) return chooseQueueAgent(values, cwd, search);
  const lost = (['env.type', 'agent.args', 'env.args'] as const).find(
    name => Object.keys(values[name] ?? {}).length > 0,
  );
  if (lost !== undefined) throw new ConfigError([`${lost} is for agent.type, which is not given`]);
  const { 'agent.env': env, 'train.agent_func_path': file, 'reward.remote_url': reward } = values;
  const given = Object.entries({ 'agent.env': env, 'train.agent_func_path': file, 'reward.remote_url': reward })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (given.length !== 1) {
    const found = given.length === 0 ? 'none is' : `${given.join(' and ')} are`;
    throw new ConfigError([
      `exactly one of agent.env, train.agent_func_path and reward.remote_url says what the policy is rewarded for; ${found} given`,
    ]);
  }
  try {
    const play = (factory: EnvironmentFactory) => (search ? treeSearch(factory, search) : multiTurn(factory));
    if (env !== undefined) return play(makeEnvironment(env, values['agent.env_parameters']));
    if (reward !== undefined) {
      const scores = await loadRewardFile(resolve(cwd, reward));
      return search ? treeSearch(scoredAnswer(scores), search) : singleTurn({ reward: scores });
    }
    return withSearch(await loadAgentFile(file!, play, cwd), search);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

/** The agent and the environment service of `agent.type` and `env.type`, registered by the file where one is named. */
async function chooseQueueAgent(
  values: Values<typeof agentChoiceOptions & typeof queueOptions>,
  cwd: string,
  search: TreeSearchOptions | undefined,
): Promise<Executor> {
  const { 'agent.type': agent, 'env.type': service, 'train.agent_func_path': file } = values;
  const others = (['agent.env', 'reward.remote_url'] as const).filter(name => values[name] !== undefined);
  if (others.length > 0) throw new ConfigError([`agent.type brings its own reward: leave out ${others.join(' and ')}`]);
  if (service === undefined) throw new ConfigError(['agent.type needs env.type, the environment that it talks to']);
  try {
    if (file !== undefined) await loadRegistrations(file, cwd);
    const environment = serviceMaker(service, values['env.args']);
    return withSearch(queueAgent({ agent: agentMaker(agent!, values['agent.args']), environment }), search);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

/** The policy calls the tools of the servers of `env.mcp.servers`; the reward file scores what it ends with. */
async function chooseMcpAgent(
  values: Values<typeof agentChoiceOptions & typeof queueOptions & typeof mcpOptions>,
  cwd: string,
  search: TreeSearchOptions | undefined,
): Promise<Executor> {
  const { 'env.mcp.servers': servers, 'reward.remote_url': reward } = values;
  const others = (['agent.env', 'agent.type', 'train.agent_func_path'] as const).filter(
    name => values[name] !== undefined,
  );
  if (others.length > 0)
    throw new ConfigError([`env.mcp.servers makes a tool agent: leave out ${others.join(' and ')}`]);
  if (reward === undefined)
    throw new ConfigError(['env.mcp.servers needs reward.remote_url, which scores the episodes']);
  try {
    const { mcpToolsFrom } = await import('../envs/clients/mcp/file.ts');
    const scores = await loadRewardFile(resolve(cwd, reward));
    return withSearch(toolAgent({ tools: await mcpToolsFrom(servers!, cwd), reward: scores }), search);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

function searchOf(values: Values<typeof searchOptions>): TreeSearchOptions | undefined {
  try {
    return searchFromOptions(values);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

/** An executor of the user's own has its own way of making attempts. */
function withSearch(executor: Executor, search: TreeSearchOptions | undefined): Executor {
  if (search === undefined || executor.name === 'tree') return executor;
  throw new Error(
    `agent.search.strategy makes trees of turns with an environment, and train.agent_func_path gives the executor '${executor.name}'; leave it out`,
  );
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
