import type { AgentServer, NemoGymRow, Verdict } from '../../envs/clients/nemo-gym/contracts.ts';
import type { Segment } from '../../episode/episode.ts';
import { EpisodeError, messageOf } from '../../episode/failure.ts';
import type { RewardOutput } from '../../rewards/contracts.ts';
import type { Executor } from '../contracts.ts';
import { type RecordedRun, recordedAgent } from '../recorded/recorded-agent.ts';
import { EPISODE_FIELD, type RecordingServerOptions } from '../recorded/server.ts';
import { rowOf } from './rows.ts';
import { checkBundles } from './token-bundles.ts';
import { componentsOf, Verdicts } from './verdicts.ts';

export interface NemoGymAgentOptions {
  readonly agent: AgentServer;
  /** Where the policy is served: the address that NeMo Gym's configuration has as `policy_base_url`, without its /v1. */
  readonly model?: Pick<RecordingServerOptions, 'host' | 'port' | 'maxConcurrent'> | undefined;
  /** Deadline of one `/run`; `agent.timeout_ms` when not given. */
  readonly timeoutMs?: number | undefined;
  /** Name of a tool-call dialect; that of the checkpoint's chat template, else ReAct, when not given. */
  readonly dialect?: string | undefined;
}

/**
 * Episodes that an agent server of NeMo Gym plays with our policy: `/run` with the task's dataset row, answered by a
 * verdict. The policy is served to it at one address for all episodes; metadata in the row names the episode, and
 * agents and model servers of NeMo Gym pass that on. What is asked there is recorded and is what is trained on; token
 * ids that come back with the verdict must be those that were recorded.
 */
export function nemoGymAgent({ agent, model, timeoutMs, dialect }: NemoGymAgentOptions): Executor {
  const verdicts = new Verdicts();
  const given = new Map<string, Verdict>();
  const recorded = recordedAgent({
    run: (task, episode) => agent.run(named(rowOf(task.metadata), episode), episode.signal),
    reward: inputs =>
      inputs.map(({ result, episode }) => {
        const verdict = result as Verdict | undefined;
        if (verdict === undefined) throw new EpisodeError('overflow', NO_VERDICT);
        given.set(episode.id, verdict);
        return scored(verdict, episode.segments);
      }),
    server: { ...model, models: ['*'], shared: true },
    timeoutMs,
    dialect,
  });
  return {
    ...recorded,
    name: 'nemo-gym-agent',
    async run(task, context) {
      try {
        const episode = await recorded.run(task, context);
        const verdict = given.get(context.id);
        if (verdict !== undefined && episode.outcome.kind !== 'failed') verdicts.set(episode, verdict);
        return episode;
      } finally {
        given.delete(context.id);
      }
    },
    summarize: (groups, signal) => verdicts.summary(agent, groups, signal),
  };
}

const NO_VERDICT =
  '/run failed when its episode had no room for a further answer (agent.max_turns, data.max_len), so that there is no ' +
  "verdict; give the agent's configuration fewer max_steps";

function scored(verdict: Verdict, segments: readonly Segment[]): RewardOutput {
  const answers = segments.filter(({ source }) => source === 'policy').length;
  let returned: number;
  try {
    returned = checkBundles(verdict.response?.output ?? [], segments);
  } catch (error) {
    throw new EpisodeError('recorder', `/run: ${messageOf(error)}`, { cause: error });
  }
  const metrics = { nemo_gym_answers_returned: returned / answers, ...componentsOf(verdict) };
  return { reward: verdict.reward, metrics };
}

/**
 * The row with the name of its episode in every place that some server passes on: metadata (to a model server and what
 * is behind it), `extra_body` there (to the upstream of `vllm_model`), the rollout's id (before the path, when traced).
 */
function named(row: NemoGymRow, { name }: RecordedRun): NemoGymRow {
  const { metadata = {}, ...params } = row.responses_create_params;
  const extra = { ...(JSON.parse(metadata.extra_body ?? '{}') as object), [EPISODE_FIELD]: name };
  const naming = { ...metadata, [EPISODE_FIELD]: name, extra_body: JSON.stringify(extra) };
  return { ...row, responses_create_params: { ...params, metadata: naming }, _ng_rollout_id: name };
}
