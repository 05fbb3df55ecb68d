import { z } from 'zod';
import { explain } from '../episode/explain.ts';
import type { RewardOutput } from './contracts.ts';

const number = z.number();
/** A number, or one alone in a list: rows of a tensor of shape [n, 1]. */
const alone = z.union([number, z.tuple([number]).transform(([one]) => one)]);
const RewardAnswer = z.object({
  rewards: z.array(alone),
  scores: z.array(alone).nullish(),
  extra_logs: z.record(z.string(), z.unknown()).nullish(),
});

/**
 * The rewards of `count` answers, as OpenRLHF's reward functions and servers give them: `{rewards, scores?, extra_logs?}`.
 * Of the logs, those that are one number, or one for each answer, become metrics.
 * @throws Error that says what was given instead
 */
export function readRewardAnswer(answer: unknown, count: number): RewardOutput[] {
  const parsed = RewardAnswer.safeParse(answer);
  if (!parsed.success) throw new Error(`gave something else than rewards: ${explain(parsed.error, answer)}`);
  const { rewards, scores, extra_logs: logs } = parsed.data;
  for (const [name, values] of Object.entries({ rewards, scores: scores ?? rewards })) {
    if (values.length !== count) throw new Error(`was asked about ${count} answers and gave ${values.length} ${name}`);
  }
  const metrics = Object.entries(logs ?? {}).flatMap(([name, values]) => {
    const list = Array.isArray(values) ? values.flat() : Array.from({ length: count }, () => values);
    return list.length === count && list.every(Number.isFinite) ? [[name, list as number[]] as const] : [];
  });
  return rewards.map((reward, i) => ({
    reward,
    ...(scores && { score: scores[i]! }),
    metrics: Object.fromEntries(metrics.map(([name, values]) => [name, values[i]!])),
  }));
}
