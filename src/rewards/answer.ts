import { z } from 'zod';
import { explain } from '../episode/explain.ts';
import { type Scored, totalled } from './contracts.ts';

const number = z.number();
/** A number, or one alone in a list: rows of a tensor of shape [n, 1]. */
const alone = z.union([number, z.tuple([number]).transform(([one]) => one)]);
const lists = z.array(z.array(number));
const RewardAnswer = z.object({
  rewards: z.array(alone).nullish(),
  scores: z.array(alone).nullish(),
  token_rewards: lists.nullish(),
  step_rewards: lists.nullish(),
  extra_logs: z.record(z.string(), z.unknown()).nullish(),
});

/**
 * The rewards of `count` answers, as OpenRLHF's reward functions and servers give them: `{rewards, scores?, extra_logs?}`.
 * `token_rewards` and `step_rewards` are ours, a list for each answer: `tokens` and `steps` of its RewardOutput. Of the
 * logs, those that are one number, or one for each answer, become metrics.
 * @throws Error that says what was given instead
 */
export function readRewardAnswer(answer: unknown, count: number): Scored[] {
  const parsed = RewardAnswer.safeParse(answer);
  if (!parsed.success) throw new Error(`gave something else than rewards: ${explain(parsed.error, answer)}`);
  const { rewards, scores, token_rewards, step_rewards, extra_logs: logs } = parsed.data;
  if (!rewards && !token_rewards && !step_rewards) {
    throw new Error('gave something else than rewards: rewards: expected an array, got nothing');
  }
  for (const [name, values] of Object.entries({ rewards, scores, token_rewards, step_rewards })) {
    if (values && values.length !== count) {
      throw new Error(`was asked about ${count} answers and gave ${values.length} ${name}`);
    }
  }
  const metrics = Object.entries(logs ?? {}).flatMap(([name, values]) => {
    const list = Array.isArray(values) ? values.flat() : Array.from({ length: count }, () => values);
    return list.length === count && list.every(Number.isFinite) ? [[name, list as number[]] as const] : [];
  });
  return Array.from({ length: count }, (_, i) =>
    totalled({
      ...(rewards && { reward: rewards[i]! }),
      ...(scores && { score: scores[i]! }),
      ...(token_rewards && { tokens: token_rewards[i]! }),
      ...(step_rewards && { steps: step_rewards[i]! }),
      metrics: Object.fromEntries(metrics.map(([name, values]) => [name, values[i]!])),
    }),
  );
}
