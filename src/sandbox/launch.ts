import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bubblewrapArguments, limitArguments } from './bubblewrap.ts';
import type { Language } from './contracts.ts';
import type { Installation } from './installation.ts';
import { seccompFilter } from './seccomp.ts';
import type { SandboxSettings } from './settings.ts';

/** Whom the sandbox runs as when tokenloop runs as root: the kernel exempts root from the limit of processes. */
export const NOBODY = 65_534;

export interface Launched {
  readonly child: ChildProcess;
  /** Removes what was made outside for it; after its end. */
  readonly cleanUp: () => Promise<void>;
}

/**
 * Starts an interpreter with its driver: descriptor 0 is empty, 1 and 2 are its output, 3 takes requests, 4 gives
 * answers. It leads a process group of its own.
 */
export async function launch(
  language: Language,
  { program, args, mounts, environment, startMiB, bwrap, prlimit }: Installation,
  settings: SandboxSettings,
): Promise<Launched> {
  const limited = prlimit === undefined ? [] : [prlimit, ...limitArguments(language, settings, startMiB)];
  if (bwrap !== undefined) {
    const filter = openFilter();
    const seccomp = filter === undefined ? [] : ['--seccomp', String(FILTER)];
    const inside = [...seccomp, ...bubblewrapArguments(mounts, environment, settings), ...limited, program, ...args];
    const asRoot = process.getuid?.() === 0;
    const options = { cwd: '/', env: {}, ...(asRoot ? { uid: NOBODY, gid: NOBODY } : {}) };
    try {
      return { child: start(bwrap, inside, options, filter), cleanUp: async () => undefined };
    } finally {
      if (filter !== undefined) closeSync(filter);
    }
  }
  const directory = await mkdtemp(join(tmpdir(), 'tokenloop-run-'));
  const [command, ...rest] = [...limited, program, ...args];
  const child = start(command!, rest, { cwd: directory, env: { ...environment, HOME: directory } });
  return { child, cleanUp: () => rm(directory, { recursive: true, force: true }) };
}

/** @param filter becomes the descriptor `FILTER`, which bwrap reads and closes */
function start(command: string, args: readonly string[], options: object, filter?: number): ChildProcess {
  const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', filter ?? 'ignore'];
  const inherited = inheritedDescriptors();
  const nothing = inherited.length === 0 ? undefined : openSync('/dev/null', 'r');
  try {
    for (const each of inherited) {
      while (stdio.length <= each) stdio.push('ignore');
      if (each !== FILTER || filter === undefined) stdio[each] = nothing!;
    }
    return spawn(command, args, { ...options, detached: true, stdio });
  } finally {
    if (nothing !== undefined) closeSync(nothing);
  }
}

const FILTER = 5;
let kept: number | undefined;

/** A descriptor of the filter of system calls, at its beginning; undefined where there is none for this machine. */
function openFilter(): number | undefined {
  const filter = seccompFilter();
  if (filter === undefined) return undefined;
  if (kept === undefined) {
    const directory = mkdtempSync(join(tmpdir(), 'tokenloop-filter-'));
    writeFileSync(join(directory, 'filter'), filter, { mode: 0o600 });
    kept = openSync(join(directory, 'filter'), 'r');
    rmSync(directory, { recursive: true });
  }
  return openSync(`/proc/self/fd/${kept}`, 'r');
}

/** Descriptors that this process was started with and would hand on; programs get /dev/null in their place. Ascending. */
function inheritedDescriptors(): number[] {
  if (process.platform !== 'linux') return [];
  const open = readdirSync('/proc/self/fd').map(Number);
  return open.filter(fd => fd > 4 && !closesOnExec(fd)).sort((a, b) => a - b);
}

function closesOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & O_CLOEXEC) !== 0;
  } catch {
    return true; // closed since it was listed, as the descriptor of the list itself is
  }
}

/** Node does not export it; the same on x86-64 and arm64. */
const O_CLOEXEC = 0o2000000;
