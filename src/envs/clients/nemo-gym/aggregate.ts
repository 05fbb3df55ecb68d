import type { Item } from './contracts.ts';
import { type RequestOptions, request } from './request.ts';
import { aggregated, parseReply } from './wire.ts';

/**
 * `/aggregate_metrics` of a resources or agent server: what it says of all rollouts together, numbers only. Names are
 * the server's (`mean/reward`, `pass@1` …).
 */
export async function aggregate(
  base: string,
  verified: readonly Item[],
  options: Pick<RequestOptions, 'signal' | 'delaysMs'>,
): Promise<Readonly<Record<string, number>>> {
  const body = { verify_responses: verified.map(stripped) };
  const reply = await request(`${base}/aggregate_metrics`, { ...options, body, repeatable: true });
  const { agent_metrics: all, key_metrics: key } = parseReply(aggregated, reply);
  const entries = Object.entries({ ...all, ...key });
  return Object.fromEntries(entries.filter((entry): entry is [string, number] => Number.isFinite(entry[1])));
}

/** Without the conversation, as NeMo Gym's own collector sends it: usage is all that is kept of the response. */
function stripped({ responses_create_params: _, response, ...rest }: Item): Item {
  const { usage } = (response ?? {}) as Item;
  return usage === undefined || usage === null ? rest : { ...rest, response: { usage } };
}
