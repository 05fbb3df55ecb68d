import { mkdir, rm, statfs, writeFile } from 'node:fs/promises';
import { availableParallelism, freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../episode/failure.ts';
import type { Finding } from './finding.ts';

/** The oldest Node that is supported, as in package.json. */
const OLDEST_NODE = [20, 19] as const;
const GIB = 2 ** 30;

export async function checkMachine(cwd: string): Promise<Finding[]> {
  return [
    checkNode(process.versions.node),
    { what: 'platform', state: 'ok', found: `${process.platform}/${process.arch}, ${availableParallelism()} cores` },
    checkMemory(freemem(), totalmem()),
    await checkRuns(join(cwd, 'runs')),
  ];
}

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldest, oldestMinor] = OLDEST_NODE;
  if (major > oldest || (major === oldest && minor >= oldestMinor)) {
    return { what: 'node', state: 'ok', found: version };
  }
  return { what: 'node', state: 'failed', found: version, remedy: `install Node ${oldest}.${oldestMinor} or newer` };
}

export function checkMemory(free: number, total: number): Finding {
  const found = `${(free / GIB).toFixed(1)} of ${(total / GIB).toFixed(1)} GiB free`;
  if (free >= GIB) return { what: 'memory', state: 'ok', found };
  const remedy = 'the main job needs about 1 GiB; close other programs';
  return { what: 'memory', state: 'warning', found, remedy };
}

/** Writes a file where runs go and removes it again, with the directories it had to make. */
export async function checkRuns(directory: string): Promise<Finding> {
  const what = 'runs directory';
  let made: string | undefined;
  try {
    made = await mkdir(directory, { recursive: true });
    const probe = join(directory, `.doctor-${process.pid}`);
    await writeFile(probe, 'writable');
    await rm(probe);
    const { bavail, bsize } = await statfs(directory);
    const free = bavail * bsize;
    const found = `${directory} is writable, ${(free / GIB).toFixed(1)} GiB free`;
    if (free >= GIB) return { what, state: 'ok', found };
    return { what, state: 'warning', found, remedy: 'make room, or give another place with --run.dir' };
  } catch (error) {
    return { what, state: 'failed', found: messageOf(error), remedy: 'give a writable place with --run.dir' };
  } finally {
    if (made !== undefined) await rm(made, { recursive: true });
  }
}
