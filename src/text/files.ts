import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../episode/failure.ts';

/** Text of a file of a checkpoint directory; undefined when there is no such file. */
export async function readText(directory: string, name: string): Promise<string | undefined> {
  try {
    return await readFile(join(directory, name), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${join(directory, name)} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** Object in a JSON file of a checkpoint directory; undefined when there is no such file. */
export async function readJson(directory: string, name: string): Promise<Record<string, unknown> | undefined> {
  const text = await readText(directory, name);
  if (text === undefined) return undefined;
  const file = join(directory, name);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not valid JSON: ${messageOf(error)}; fetch or write it again`, { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${file} holds ${Array.isArray(value) ? 'a list' : String(value)}; a JSON object is expected`);
  }
  return value as Record<string, unknown>;
}
