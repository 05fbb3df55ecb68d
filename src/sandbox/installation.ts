import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Mounts } from './bubblewrap.ts';
import type { Language } from './contracts.ts';
import { JAVASCRIPT_DRIVER } from './drivers/javascript.ts';
import { PYTHON_DRIVER } from './drivers/python.ts';
import type { SandboxSettings } from './settings.ts';

/** What one language is run with on this machine. */
export interface Installation {
  readonly program: string;
  readonly args: readonly string[];
  readonly mounts: Mounts;
  readonly environment: Readonly<Record<string, string>>;
  /** Memory that it has before its first program and that the kernel's limit counts, in MiB. */
  readonly startMiB: number;
  /** Undefined without isolation. */
  readonly bwrap: string | undefined;
  /** Undefined where there is none, which only happens without isolation. */
  readonly prlimit: string | undefined;
}

/** Shared libraries and the standard library of the system's Python; whichever are there. */
const SYSTEM = ['/usr/lib', '/usr/lib64', '/lib', '/lib64', '/usr/local/lib'];
const run = promisify(execFile);

/**
 * Finds the interpreter, what it needs to be mounted, and what holds it.
 * @throws SandboxError that says what is missing and what to do
 */
export async function findInstallation(language: Language, settings: SandboxSettings): Promise<Installation> {
  const isolated = settings.isolation === 'bubblewrap';
  const bwrap = isolated ? await findBubblewrap() : undefined;
  const prlimit = onPath('prlimit');
  if (isolated && prlimit === undefined) {
    throw new SandboxError('prlimit is not on PATH, and the sandbox needs it; install the package util-linux');
  }
  const found = language === 'python' ? await python(settings) : await node(settings);
  const directories = [...new Set([...SYSTEM, ...found.directories])].filter(path => existsSync(path));
  const files = [...found.files, ['/etc/ld.so.cache', '/etc/ld.so.cache'] as const].filter(([path]) =>
    existsSync(path),
  );
  if (prlimit !== undefined) files.push([prlimit, prlimit]);
  return {
    ...found,
    mounts: { directories, files },
    environment: { PATH: '/usr/bin', HOME: '/work', LANG: 'C.UTF-8', ...found.environment },
    bwrap,
    prlimit,
  };
}

/** The sandbox cannot be had, or cannot start a program. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
}

async function findBubblewrap(): Promise<string> {
  const instead = 'or allow programs to run with your own rights: isolation none';
  const path = onPath('bwrap');
  if (path === undefined) {
    throw new SandboxError(`bubblewrap is not on PATH, and programs are not run without; install it, ${instead}`);
  }
  const { stdout } = await run(path, ['--version']);
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(stdout) ?? [];
  if (Number(major) === 0 && Number(minor) < 8) {
    throw new SandboxError(`${path} is ${stdout.trim()}; the sandbox needs 0.8 or newer: install it, ${instead}`);
  }
  return path;
}

async function python({ python }: SandboxSettings) {
  const asked = python ?? (existsSync('/usr/bin/python3') ? '/usr/bin/python3' : onPath('python3'));
  if (asked === undefined) throw new SandboxError('python3 is not on PATH; install it, or give its path as python');
  const script = 'import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix]))';
  const answer = await run(asked, ['-c', script]).catch((error: Error) => {
    throw new SandboxError(`python ${asked} does not run: ${error.message}`, { cause: error });
  });
  const [executable, prefix, base] = JSON.parse(answer.stdout) as [string, string, string];
  const binary = realpathSync(executable);
  // A virtual environment is run by its own path, whose links lead out of it to the system's Python.
  const outside = prefix === base ? [] : linksFrom(executable).filter(path => !path.startsWith(`${prefix}/`));
  return {
    program: prefix === base ? binary : executable,
    args: ['-s', '-B', '-X', 'utf8', '-c', PYTHON_DRIVER],
    directories: [prefix, base].filter(path => path !== '/usr'),
    files: base === '/usr' ? [binary, ...outside].map(path => [binary, path] as const) : [],
    environment: { PYTHONHASHSEED: '0' },
    startMiB: 0,
  };
}

/** V8 of Node 24 reserves half a GiB for code in a way that counts; that of Node 20 does not: so it is measured. */
const DATA = "console.log(/VmData:\\s*(\\d+)/.exec(require('fs').readFileSync('/proc/self/status', 'latin1'))[1])";

async function node({ node = process.execPath, memoryMiB, isolation }: SandboxSettings) {
  if (!existsSync(node)) throw new SandboxError(`node ${node} is not there; give its path as node`);
  const outside = realpathSync(node);
  const inside = isolation === 'bubblewrap' ? '/usr/bin/node' : outside;
  const startMiB = process.platform === 'linux' ? Number((await run(outside, ['-e', DATA])).stdout) / 1024 : 0;
  return {
    program: inside,
    args: [`--max-old-space-size=${memoryMiB}`, '--random-seed=1', '-e', JAVASCRIPT_DRIVER],
    directories: [],
    files: [[outside, inside] as const],
    environment: {},
    startMiB: Math.ceil(startMiB),
  };
}

/** Where a symbolic link leads to, and where that does, to the end. */
function linksFrom(path: string): string[] {
  if (!lstatSync(path).isSymbolicLink()) return [];
  const next = resolve(dirname(path), readlinkSync(path));
  return [next, ...linksFrom(next)];
}

function onPath(name: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter(place => place !== '')
    .map(place => join(place, name))
    .find(path => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false; // not here
      }
    });
}
