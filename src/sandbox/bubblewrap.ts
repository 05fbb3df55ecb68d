import type { SandboxSettings } from './settings.ts';

/** What the inside of a sandbox is made of. */
export interface Mounts {
  /** Read-only, at the same place inside. */
  readonly directories: readonly string[];
  /** Single read-only files: outside → inside. */
  readonly files: readonly (readonly [string, string])[];
}

export const WORK = '/work';
const MIB = 2 ** 20;
/** What an interpreter may need for itself beside the memory of the program, in MiB. */
export const OWN_MIB = { python: 0, javascript: 192 } as const;

/**
 * The arguments of bwrap: new user, process, network, IPC, UTS and cgroup namespaces; an empty root that is read-only
 * but for a working directory and /dev/shm, both in memory and limited; no way back to capabilities or new namespaces;
 * everything inside dies with tokenloop.
 */
export function bubblewrapArguments(
  mounts: Mounts,
  environment: Readonly<Record<string, string>>,
  { scratchMiB }: Pick<SandboxSettings, 'scratchMiB'>,
): string[] {
  return [
    ...['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session'],
    ...['--uid', '1000', '--gid', '1000', '--hostname', 'sandbox', '--cap-drop', 'ALL', '--clearenv'],
    ...Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value]),
    ...mounts.directories.flatMap(path => ['--ro-bind', path, path]),
    ...mounts.files.flatMap(([outside, inside]) => ['--ro-bind', outside, inside]),
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(MIB), '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
    ...['--size', String(scratchMiB * MIB), '--tmpfs', WORK, '--remount-ro', '/', '--chdir', WORK, '--'],
  ];
}

/**
 * The arguments of prlimit (util-linux), which holds one process; the whole is watched from outside (watch.ts).
 * @param startMiB what the interpreter has reserved before its first program, where that counts
 */
export function limitArguments(
  language: 'python' | 'javascript',
  { memoryMiB, processes, openFiles, scratchMiB, cpuSeconds }: SandboxSettings,
  startMiB: number,
): string[] {
  // V8 reserves far more addresses than it uses: there only private memory that can be written to counts, and what Node
  // needs for itself comes on top. The heap has a limit of its own (--max-old-space-size).
  const memory =
    language === 'python'
      ? [`--as=${memoryMiB * MIB}`, `--data=${memoryMiB * MIB}`]
      : [`--data=${(memoryMiB + OWN_MIB.javascript + startMiB) * MIB}`];
  const limits = [
    `--cpu=${cpuSeconds}`,
    `--nproc=${processes}`,
    `--nofile=${openFiles}`,
    `--fsize=${scratchMiB * MIB}`,
    '--core=0',
  ];
  return [...memory, ...limits, '--'];
}
