import type { Item, NemoGymRow, ResourcesSession, Verdict } from '../../envs/clients/nemo-gym/contracts.ts';
import type { Outcome } from '../../episode/episode.ts';
import type { Session } from '../session.ts';
import type { ModelServer } from './model-server.ts';

interface Call {
  readonly name: string;
  readonly call_id: string;
  /** JSON. */
  readonly arguments: string;
}

/**
 * One rollout as NeMo Gym's simple agent plays it: the session is seeded with the row, calls are made one after another
 * and answered with what the server says, whatever its status, until an answer has none, is cut, or turns or tokens are
 * used up. Then the server verifies all that was said.
 */
export async function toolRollout(
  session: Session,
  policy: ModelServer,
  server: ResourcesSession,
  row: NemoGymRow,
): Promise<{ readonly outcome: Outcome; readonly verdict: Verdict }> {
  await session.call('environment', '/seed_session', () => server.seed(row));
  const outcome = await play(session, policy, server, row);
  const verdict = await session.call('reward', '/verify', () => server.verify(row, policy.response));
  session.recorder.addReward(verdict.reward);
  return { outcome, verdict };
}

async function play(
  session: Session,
  policy: ModelServer,
  server: ResourcesSession,
  row: NemoGymRow,
): Promise<Outcome> {
  const { maxTurns } = session.context.limits;
  session.addMetrics({ tool_failures: 0 });
  for (let turn = 1; ; turn++) {
    const response = await policy.answer(row.responses_create_params);
    if (response === undefined) return { kind: 'truncated', reason: 'tokens' };
    if (response.incomplete_details != null) return { kind: 'truncated', reason: 'length' };
    const calls = response.output.filter(({ type }) => type === 'function_call') as unknown as Call[];
    if (calls.length === 0) return { kind: 'done' };
    for (const call of calls) policy.said.push(await made(call, session, server));
    if (turn >= maxTurns) return { kind: 'truncated', reason: 'turns' };
  }
}

async function made({ name, call_id, arguments: given }: Call, session: Session, server: ResourcesSession) {
  const { status, text } = await session.call('tool', `tool ${name}`, () => server.call(name, JSON.parse(given)));
  if (status < 200 || status > 299) {
    session.recorder.steps.at(-1)!.toolFailed = true;
    session.addMetrics({ tool_failures: 1 });
  }
  return { type: 'function_call_output', call_id, output: text } satisfies Item;
}
