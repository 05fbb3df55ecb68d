import type { ResourcesServer, Verdict } from '../../envs/clients/nemo-gym/contracts.ts';
import { boundary } from '../../episode/failure.ts';
import { toolDialect } from '../../text/tool-calls/choose.ts';
import type { Executor } from '../contracts.ts';
import { recordEpisode } from '../session.ts';
import { gymnasiumRollout } from './gymnasium-rollout.ts';
import { ModelServer } from './model-server.ts';
import { rowOf } from './rows.ts';
import { toolRollout } from './tool-rollout.ts';
import { componentsOf, Verdicts } from './verdicts.ts';

export interface NemoGymOptions {
  readonly server: ResourcesServer;
  /** `tools`: seed, calls, verify. `gymnasium`: reset and step. `tools` when not given. */
  readonly style?: 'tools' | 'gymnasium' | undefined;
  /** Name of a tool-call dialect; that of the checkpoint's chat template, else ReAct, when not given. */
  readonly dialect?: string | undefined;
}

/**
 * The policy as agent of a NeMo Gym resources server: tools and verifier are the server's, everything else is here. A
 * task's metadata is its dataset row. What the server fails to do fails the episode: seeding, resetting and stepping as
 * `environment`, a tool that gives no answer as `tool`, the verdict as `reward`.
 */
export function nemoGym({ server, style = 'tools', dialect: named }: NemoGymOptions): Executor {
  const dialect = named === undefined ? undefined : toolDialect(named);
  const rollout = style === 'tools' ? toolRollout : gymnasiumRollout;
  const verdicts = new Verdicts();
  return {
    name: 'nemo-gym',
    async run(task, context) {
      let verdict: Verdict | undefined;
      const episode = await recordEpisode(task, context, async session => {
        const row = await boundary('environment', 'task', () => rowOf(task.metadata));
        const policy = new ModelServer(session, dialect);
        try {
          const ended = await rollout(session, policy, server.session(session.signal), row);
          verdict = ended.verdict;
          session.addMetrics(componentsOf(verdict));
          return ended.outcome;
        } finally {
          policy.settle();
        }
      });
      if (verdict !== undefined) verdicts.set(episode, verdict);
      return episode;
    },
    summarize: (groups, signal) => verdicts.summary(server, groups, signal),
  };
}
