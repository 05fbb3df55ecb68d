import type { NemoGymRow, ResourcesSession, Verdict } from '../../envs/clients/nemo-gym/contracts.ts';
import type { Outcome } from '../../episode/episode.ts';
import type { Session } from '../session.ts';
import type { ModelServer } from './model-server.ts';

/**
 * One rollout with a resources server in the style of Gymnasium: `/reset`, then `/step` with each answer, which gives
 * its reward, results of its calls and the next observation as a user's message. The verdict is the sum of the rewards.
 */
export async function gymnasiumRollout(
  session: Session,
  policy: ModelServer,
  server: ResourcesSession,
  row: NemoGymRow,
): Promise<{ readonly outcome: Outcome; readonly verdict: Verdict }> {
  session.onEnd('/close', () => server.close());
  const { observation } = await session.call('environment', '/reset', () => server.reset(row));
  const begun = observation ? [user(observation)] : [];
  const { maxTurns } = session.context.limits;
  let reward = 0;
  const end = (outcome: Outcome) => ({ outcome, verdict: { ...row, response: policy.response, reward } });
  for (let turn = 1; ; turn++) {
    const response = await policy.answer(row.responses_create_params, begun);
    if (response === undefined) return end({ kind: 'truncated', reason: 'tokens' });
    const stepped = await session.call('environment', '/step', () => server.step(row, response));
    session.recorder.addReward(stepped.reward);
    reward += stepped.reward;
    if (stepped.terminated) return end({ kind: 'done' });
    // The environment's own limit is one of turns.
    if (stepped.truncated || turn >= maxTurns) return end({ kind: 'truncated', reason: 'turns' });
    for (const { call_id, output } of stepped.toolOutputs) {
      policy.said.push({ type: 'function_call_output', call_id, output });
    }
    if (stepped.observation) policy.said.push(user(stepped.observation));
  }
}

function user(content: string) {
  return { role: 'user', content };
}
