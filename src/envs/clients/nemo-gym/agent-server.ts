import { aggregate } from './aggregate.ts';
import type { AgentServer } from './contracts.ts';
import { request } from './request.ts';
import { baseOf, type NemoGymServerOptions } from './resources-server.ts';
import { parseReply, refuseFailure, verdict } from './wire.ts';

/**
 * An agent server of NeMo Gym at `url`. `/run` plays an episode and is never sent twice.
 * @throws Error for anything but an HTTP address
 */
export function agentServer(url: string, options: NemoGymServerOptions = {}): AgentServer {
  const base = baseOf(url);
  return {
    async run(row, signal) {
      const given = parseReply(verdict, await request(`${base}/run`, { ...options, body: row, signal }));
      refuseFailure('environment', '/run', given);
      return given;
    },
    aggregateMetrics: (verified, signal) => aggregate(base, verified, { ...options, signal }),
  };
}
