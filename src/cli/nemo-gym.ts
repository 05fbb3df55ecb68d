import type { Executor } from '../agents/contracts.ts';
import type { nemoGymOptions } from '../agents/nemo-gym/options.ts';
import { nemoGymAgent } from '../agents/nemo-gym/remote-agent.ts';
import { nemoGym } from '../agents/nemo-gym/resources-agent.ts';
import { ConfigError } from '../config/error.ts';
import { agentServer } from '../envs/clients/nemo-gym/agent-server.ts';
import { serverUrl } from '../envs/clients/nemo-gym/head-server.ts';
import { resourcesServer } from '../envs/clients/nemo-gym/resources-server.ts';
import { messageOf } from '../episode/failure.ts';
import type { Values } from '../options/option.ts';

export type NemoGymValues = Values<typeof nemoGymOptions>;

/** Whether the tasks are played with a server of NeMo Gym. */
export function usesNemoGym(values: Partial<NemoGymValues>): boolean {
  return values['env.nemo_gym.url'] !== undefined || values['env.nemo_gym.instance'] !== undefined;
}

/** The option that says something of a server which no option names. */
export function lostNemoGymOption(values: NemoGymValues): string | undefined {
  const { 'env.nemo_gym.mode': mode, ...others } = values;
  const given = { 'env.nemo_gym.mode': mode === 'tools' ? undefined : mode, ...others };
  return (['mode', 'head_url', 'model_port', 'model_host'] as const)
    .map(name => `env.nemo_gym.${name}` as const)
    .find(name => given[name] !== undefined);
}

/** The agent for that server. `others` are the options given that choose an agent, too. */
export async function chooseNemoGym(values: NemoGymValues, others: readonly string[]): Promise<Executor> {
  const { 'env.nemo_gym.mode': mode, 'env.nemo_gym.model_port': port, 'env.nemo_gym.model_host': host } = values;
  const given = values['env.nemo_gym.url'] === undefined ? 'env.nemo_gym.instance' : 'env.nemo_gym.url';
  if (others.length > 0) {
    throw new ConfigError([`the server of ${given} brings tasks and rewards: leave out ${others.join(' and ')}`]);
  }
  if (mode === 'agent' && port === undefined) {
    throw new ConfigError([
      'env.nemo_gym.mode agent needs env.nemo_gym.model_port: the port of policy_base_url, where the agent asks the policy',
    ]);
  }
  const lost = Object.entries({ 'env.nemo_gym.model_port': port, 'env.nemo_gym.model_host': host });
  const [unused] = lost.find(([, value]) => mode !== 'agent' && value !== undefined) ?? [];
  if (unused !== undefined) throw new ConfigError([`${unused} is for env.nemo_gym.mode agent`]);
  try {
    const url = await addressOf(values);
    if (mode === 'agent') return nemoGymAgent({ agent: agentServer(url), model: { host, port } });
    return nemoGym({ server: resourcesServer(url), style: mode });
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

async function addressOf(values: NemoGymValues): Promise<string> {
  const { 'env.nemo_gym.url': url, 'env.nemo_gym.instance': name, 'env.nemo_gym.head_url': head } = values;
  if (url !== undefined) {
    const more = [name && 'env.nemo_gym.instance', head && 'env.nemo_gym.head_url'].filter(Boolean);
    if (more.length > 0) throw new Error(`env.nemo_gym.url is the server's address: leave out ${more.join(' and ')}`);
    return url;
  }
  return serverUrl(head ?? 'http://127.0.0.1:11000', name!);
}
