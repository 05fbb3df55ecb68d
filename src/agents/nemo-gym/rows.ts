import { z } from 'zod';
import type { Item, NemoGymRow } from '../../envs/clients/nemo-gym/contracts.ts';
import { explain } from '../../episode/explain.ts';
import type { Message } from '../../episode/task.ts';

const item = z.looseObject({});
const row = z.looseObject({
  responses_create_params: z.looseObject({
    input: z.union([z.string().min(1), z.array(item).min(1)], { error: 'expected text or an array of items' }),
    metadata: z
      .record(z.string(), z.string())
      .nullish()
      .transform(given => given ?? undefined),
  }),
});

/**
 * The row that a task was made of: its metadata.
 * @throws Error that names the field
 */
export function rowOf(metadata: unknown): NemoGymRow {
  const parsed = row.safeParse(metadata);
  if (parsed.success) return parsed.data;
  throw new Error(`no row of a NeMo Gym dataset: ${explain(parsed.error, metadata)}`);
}

/**
 * What a row of a NeMo Gym dataset says as a task: the text of its input, for those who look at the task. The agent
 * reads the row itself, which is the task's metadata.
 * @throws Error that names the field
 */
export function nemoGymTask(given: unknown) {
  const metadata = rowOf(given);
  const { input, instructions } = metadata.responses_create_params;
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  const { id, agent_ref: agent } = metadata as { readonly id?: unknown; readonly agent_ref?: { name?: unknown } };
  return {
    prompt: [...system, ...items.flatMap(messageOf)],
    id: typeof id === 'string' ? id : undefined,
    source: typeof agent?.name === 'string' ? agent.name : undefined,
    metadata,
  };
}

function messageOf({ role, content }: Item): Message[] {
  if (typeof role !== 'string') return [];
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ text: content }];
  const texts = parts.map(part => (part as { readonly text?: unknown } | null)?.text);
  return [{ role, content: texts.filter(text => typeof text === 'string').join('') }];
}
