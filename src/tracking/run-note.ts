import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '../storage/atomic.ts';

/**
 * What a tracker keeps in the run's directory to find its run on a server again, as JSON without secrets. Undefined
 * when there is none.
 */
export async function readNote(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read: ${(error as Error).message}; remove it to start a new run on the server`);
  }
}

export function writeNote(path: string, note: unknown): Promise<void> {
  return writeFileAtomic(path, `${JSON.stringify(note)}\n`);
}
