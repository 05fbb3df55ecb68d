import { readFileSync } from 'node:fs';
import { link, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { explainDiskError } from './atomic.ts';
import { makeDirectory } from './directories.ts';

/**
 * One process at a time in a directory: `lock.json` names its owner. It is there whole or not at all (a hard link), and
 * that of a process which has ended is taken over. Clocks play no part in that.
 */

const Owner = z.object({
  pid: z.int(),
  host: z.string(),
  /** Of the running system and of the process, where the system tells: process ids are used again. */
  boot: z.string().optional(),
  start: z.string().optional(),
  /** For people. */
  since: z.string(),
});
type Owner = z.infer<typeof Owner>;

export interface Lock {
  release(): Promise<void>;
}

let attempts = 0;

/** Somebody else works in the directory. */
export class InUseError extends Error {
  override readonly name = 'InUseError';
}

/**
 * Takes the directory, which is made where it is missing. `notice` is told when the lock of a dead process is taken over.
 * @throws InUseError naming the owner
 */
export async function acquireLock(directory: string, notice: (message: string) => void): Promise<Lock> {
  const path = join(directory, 'lock.json');
  const mine = await owner();
  const own = `${path}.${process.pid}.${attempts++}`;
  try {
    await makeDirectory(directory);
    await writeFile(own, `${JSON.stringify(mine)}\n`);
  } catch (error) {
    throw explainDiskError(path, error);
  }
  try {
    while (!(await linked(own, path))) {
      const other = await readOwner(path);
      if (other === undefined) continue;
      if (isAlive(other)) {
        throw new InUseError(
          `${directory} is in use by process ${other.pid} on ${other.host} since ${other.since}; wait for it, or choose another directory. If that process is gone for certain, remove ${path}`,
        );
      }
      if (await takeAway(path, other)) {
        notice(
          `took ${directory} over from process ${other.pid} on ${other.host}, which has ended without giving it back`,
        );
      }
    }
  } finally {
    await unlink(own);
  }
  await clearLeftovers(directory);
  return {
    release: async () => {
      const present = await readOwner(path);
      if (present !== undefined && isSame(present, mine)) await unlink(path);
    },
  };
}

/** What killed processes left behind while they tried. */
async function clearLeftovers(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const pid = /^lock\.json\.(\d+)\./.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) await rm(join(directory, name), { force: true });
  }
}

/** False where there is a lock already. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    // File systems without hard links: a moment's gap between the look and the rename is what they offer.
    if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'].includes(code)) throw explainDiskError(to, error);
    try {
      await writeFile(to, await readFile(from), { flag: 'wx' });
      return true;
    } catch (second) {
      if ((second as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw explainDiskError(to, second);
    }
  }
}

/** Removes the lock of `stale`, and no other: somebody may have been quicker. */
async function takeAway(path: string, stale: Owner): Promise<boolean> {
  const aside = `${path}.${process.pid}.${attempts++}.stale`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
  const taken = await readOwner(aside);
  if (taken !== undefined && !isSame(taken, stale)) {
    await link(aside, path);
    await unlink(aside);
    return false;
  }
  await unlink(aside);
  return true;
}

/** Undefined when there is none. */
async function readOwner(path: string): Promise<Owner | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const parsed = Owner.safeParse(parse(text));
  if (parsed.success) return parsed.data;
  throw new InUseError(`${path} does not say who uses the directory; remove it if nobody does`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What is not JSON is no owner either.
    return undefined;
  }
}

async function owner(): Promise<Owner> {
  const boot = bootId();
  const start = startOf(process.pid);
  return {
    pid: process.pid,
    host: hostname(),
    ...(boot === undefined ? {} : { boot }),
    ...(start === undefined ? {} : { start }),
    since: new Date().toISOString(),
  };
}

function isSame(a: Owner, b: Owner): boolean {
  return a.pid === b.pid && a.host === b.host && a.boot === b.boot && a.start === b.start;
}

/** Of a process on another host nothing can be known, so it counts as alive. */
function isAlive({ pid, host, boot, start }: Owner): boolean {
  if (host !== hostname()) return true;
  const present = bootId();
  if (boot !== undefined && present !== undefined && boot !== present) return false;
  return isRunning(pid) && (start === undefined || startOf(pid) === start);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It runs, for somebody else, when we may not signal it.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Linux only. */
function bootId(): string | undefined {
  return contentOf('/proc/sys/kernel/random/boot_id')?.trim();
}

/** When a process was started, in ticks since the system was (proc(5), field 22); Linux only. */
function startOf(pid: number): string | undefined {
  const stat = contentOf(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses and may hold anything.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not this system, or no such process.
    return undefined;
  }
}
