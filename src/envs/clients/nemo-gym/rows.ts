import { explain } from '../../../episode/explain.ts';
import type { Message } from '../../../episode/task.ts';
import type { Item, NemoGymRow } from './contracts.ts';
import { row } from './wire.ts';

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
 * What a row says as a task: the text of its input, for those who look at the task. The agent reads the row itself.
 * @throws Error that names the field
 */
export function taskOfRow(given: unknown): {
  readonly prompt: readonly Message[];
  readonly source: string | undefined;
  readonly metadata: NemoGymRow;
} {
  const metadata = rowOf(given);
  const { input, instructions } = metadata.responses_create_params;
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  const prompt = [...system, ...items.flatMap(messageOf)];
  const { agent_ref: agent } = metadata as { readonly agent_ref?: { readonly name?: unknown } };
  return { prompt, source: typeof agent?.name === 'string' ? agent.name : undefined, metadata };
}

function messageOf({ role, content }: Item): Message[] {
  if (typeof role !== 'string') return [];
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ text: content }];
  const texts = parts.map(part => (part as { readonly text?: unknown } | null)?.text);
  return [{ role, content: texts.filter(text => typeof text === 'string').join('') }];
}
