import { z } from 'zod';
import { explain, preview } from '../../../episode/explain.ts';
import { EpisodeError, type FailureClass, messageOf } from '../../../episode/failure.ts';
import type { HttpReply } from './request.ts';

/** Shapes of what NeMo Gym's servers say, and how an answer that has none of them is refused. */

const item = z.looseObject({});
const response = z.looseObject({ output: z.array(item) });

export const anything = z.unknown();

export const verdict = z.looseObject({
  reward: z.number(),
  reward_components: z
    .record(z.string(), z.number())
    .nullish()
    .transform(given => given ?? undefined),
  response: response.nullish().transform(given => given ?? undefined),
});

const info = z
  .looseObject({})
  .nullish()
  .transform(given => given ?? {});
const observation = z
  .string()
  .nullish()
  .transform(given => given ?? null);

export const observed = z.looseObject({ observation, info });

export const stepped = z.looseObject({
  observation,
  reward: z.number(),
  terminated: z.boolean(),
  truncated: z.boolean(),
  info: z
    .looseObject({ tool_outputs: z.array(z.looseObject({ call_id: z.string(), output: z.string() })).optional() })
    .nullish()
    .transform(given => given ?? {}),
});

const numbers = z.record(z.string(), z.unknown()).nullish();
export const aggregated = z.looseObject({ agent_metrics: numbers, key_metrics: numbers });

export const instances = z.array(z.looseObject({ name: z.string().nullish(), url: z.string().nullish() }));

/**
 * What a server answered, in the shape that it must have.
 * @throws Error that says what was there instead
 */
export function parseReply<T>(schema: z.ZodType<T>, reply: HttpReply): T {
  const { status, text } = reply;
  if (status < 200 || status > 299) throw new Error(`status ${status}: ${shown(text)}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`the answer is not JSON (${messageOf(error)}): ${shown(text)}`, { cause: error });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(explain(parsed.error, value));
}

/**
 * Servers answer 200 with reward 0 when a judge or an agent of theirs has failed, and say so beside it: that is no
 * reward.
 */
export function refuseFailure(
  failureClass: FailureClass,
  what: string,
  given: Readonly<Record<string, unknown>>,
): void {
  const { _ng_failure_class: named, _ng_failure_judge_error: judge, error = judge } = given;
  if (named === undefined || named === null) return;
  const why = error === undefined || error === null ? '' : `: ${typeof error === 'string' ? error : preview(error)}`;
  throw new EpisodeError(failureClass, `${what}: ${String(named)}${why}`);
}

/** Errors of NeMo Gym are JSON strings. */
function shown(text: string): string {
  let said = text;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'string') said = value;
  } catch {
    said = text; // no JSON: shown as it is
  }
  return said === '' ? 'nothing' : said.length > 300 ? `${said.slice(0, 297)}...` : said;
}
