import { existsSync, statSync } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * Makes a directory and those that lead to it. Node's recursive mkdir never returns where a file system that has no
 * room for new directories answers that the parent does not exist (/proc); here that is an error.
 */
export async function makeDirectory(path: string): Promise<void> {
  const missing: string[] = [];
  let place = resolve(path);
  for (; !existsSync(place); place = dirname(place)) missing.push(place);
  if (missing.length === 0 && !statSync(place).isDirectory()) {
    throw Object.assign(new Error(`EEXIST: ${place} is a file`), { code: 'EEXIST' });
  }
  for (const directory of missing.reverse()) {
    try {
      await mkdir(directory);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Somebody else made it in the meantime.
      if (code === 'EEXIST' && statSync(directory).isDirectory()) continue;
      if (code !== 'ENOENT') throw error;
      throw new Error(`${directory}: this file system takes no new directories; choose another path`, { cause: error });
    }
  }
}

/** Waits until the names in a directory are on the disk: a rename is safe only then. */
export async function syncDirectory(path: string): Promise<void> {
  // Windows does not open directories; its renames are in the journal.
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } catch (error) {
    // File systems that cannot do it (some network ones) say so with these, and there is nothing better to do.
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    await directory.close();
  }
}
