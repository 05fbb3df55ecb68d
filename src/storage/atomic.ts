import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { makeDirectory, syncDirectory } from './directories.ts';

/** What the system said, and what helps. */
const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free space or choose a directory on another disk',
  EDQUOT: 'the disk quota is used up: free space or choose a directory on another disk',
  EFBIG: 'the file is larger than the system allows: raise the limit or choose another disk',
  EACCES: 'permission denied: choose a directory you may write to',
  EPERM: 'permission denied: choose a directory you may write to',
  EROFS: 'the disk is read-only: choose a directory on another disk',
  EIO: 'the disk reported an error: choose a directory on another disk',
  EEXIST: 'a part of the path is a file: choose another path',
  ENOTDIR: 'a part of the path is a file: choose another path',
  EISDIR: 'there is a directory of that name: choose another path',
  EMFILE: 'too many open files: raise the limit (ulimit -n)',
};

/** Replaces a file whole or not at all. Missing parent directories are made. */
export async function writeFileAtomic(path: string, data: string | Uint8Array): Promise<void> {
  await replaceAtomically(path, async temporary => {
    await writeFile(temporary, data, { flush: true });
    await rename(temporary, path);
    await syncDirectory(dirname(temporary));
  });
}

/**
 * Makes a directory whole or not at all: `fill` writes into a temporary sibling, which then takes the place of `path`.
 * Where `path` exists it is kept until the new one is complete, and then removed with everything in it. If the process
 * dies between the two renames of a replacement the old directory is left as `<path>.old`, where `latestDirectory` and
 * the next write find it.
 */
export async function writeDirectoryAtomic(path: string, fill: (temporary: string) => Promise<void>): Promise<void> {
  const old = oldOf(path);
  await replaceAtomically(path, async temporary => {
    if (!existsSync(path) && existsSync(old)) await rename(old, path);
    await mkdir(temporary);
    await fill(temporary);
    await flush(temporary);
    await rm(old, { recursive: true, force: true });
    if (existsSync(path)) await rename(path, old);
    await rename(temporary, path);
    await syncDirectory(dirname(temporary));
    await rm(old, { recursive: true, force: true });
  });
}

/** `path`, or what an interrupted replacement left of it. */
export function latestDirectory(path: string): string {
  const old = oldOf(path);
  return !existsSync(path) && existsSync(old) ? old : path;
}

function oldOf(path: string): string {
  return `${resolve(path)}.old`;
}

/** Waits until the directory is on the disk with every file: a rename may get there before what it renames. */
async function flush(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await syncDirectory(path);
    if (!entry.isFile()) continue;
    const file = await open(path, 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
  await syncDirectory(directory);
}

const inProgress = new Set<string>();

/** Hands `write` a path beside `path` that is free before and gone after, and explains what the disk objects to. */
async function replaceAtomically(path: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${resolve(path)}.tmp`;
  if (inProgress.has(temporary)) throw new Error(`${path} is being written already; wait for that to end`);
  inProgress.add(temporary);
  try {
    await makeDirectory(dirname(temporary));
    await rm(temporary, { recursive: true, force: true });
    try {
      await write(temporary);
    } catch (error) {
      await rm(temporary, { recursive: true, force: true });
      throw error;
    }
  } catch (error) {
    throw explainDiskError(path, error);
  } finally {
    inProgress.delete(temporary);
  }
}

/** The error of a write to `path`, in words that say what helps where the disk is to blame. */
export function explainDiskError(path: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const remedy = REMEDIES[(error as NodeJS.ErrnoException).code ?? ''];
  if (remedy === undefined) return error;
  return new Error(`could not write ${path}: ${remedy} (${error.message})`, { cause: error });
}
