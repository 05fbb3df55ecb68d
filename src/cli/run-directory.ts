import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { ConfigError } from '../config/error.ts';
import { toYaml } from '../config/to-yaml.ts';
import type { Options, Values } from '../options/option.ts';
import { writeFileAtomic } from '../storage/atomic.ts';
import { acquireLock, InUseError, type Lock } from '../storage/lock.ts';

/** Where a run keeps what it writes: absolute paths, but for `shown`. */
export interface RunDirectory {
  readonly dir: string;
  /** The directory as the user would write it. */
  readonly shown: string;
  readonly model: string;
  readonly checkpoints: string;
}

interface Places {
  readonly 'run.dir'?: string | undefined;
  readonly 'ckpt.output_dir'?: string | undefined;
  readonly 'ckpt.path'?: string | undefined;
}

/** The run's directory: `run.dir`, or `runs/<recipe>-<time>` with the recipe named after the config file. */
export function runDirectory(
  places: Places,
  run: {
    readonly command: string;
    readonly configFile?: string | undefined;
    readonly cwd: string;
    readonly now?: Date;
  },
): RunDirectory {
  const { command, configFile, cwd, now = new Date() } = run;
  const recipe = configFile === undefined ? command : recipeOf(resolve(cwd, configFile));
  const shown = places['run.dir'] ?? join('runs', `${recipe}-${stamp(now)}`);
  const inside = (place: string | undefined, name: string) => resolve(cwd, place ?? join(shown, name));
  return {
    dir: resolve(cwd, shown),
    shown,
    model: inside(places['ckpt.output_dir'], 'model'),
    checkpoints: inside(places['ckpt.path'], 'checkpoints'),
  };
}

/** `…/calculator-agent/rl.yaml` is the recipe calculator-agent-rl; the config.yaml of a run is that of the run. */
function recipeOf(configFile: string): string {
  const file = basename(configFile, extname(configFile));
  const parent = basename(dirname(configFile));
  return file === 'config' ? parent.replace(/-\d{8}-\d{6}$/, '') : `${parent}-${file}`;
}

/** Local time as 20250131-235959. */
function stamp(now: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  return `${date}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
}

/**
 * Makes the directory, takes it for this process and writes `config.yaml`, with which the run can be repeated: where it
 * was written is left out, so that a repetition gets a directory of its own. A directory that holds a run is refused
 * unless that is resumed, and so is one in which another process works.
 */
export async function openRunDirectory<T extends Options>(
  { dir, shown }: RunDirectory,
  options: T,
  values: Values<T>,
  { resume, notice }: { readonly resume: boolean; readonly notice: (message: string) => void },
): Promise<Lock> {
  const config = join(dir, 'config.yaml');
  if (existsSync(config) && !resume) {
    throw new ConfigError([
      `run.dir ${shown} holds a run already; choose another directory, or continue that run with --resume ${shown}`,
    ]);
  }
  const lock = await acquireLock(dir, notice).catch((error: unknown) => {
    throw error instanceof InUseError ? new ConfigError([error.message], { cause: error }) : error;
  });
  const { 'run.dir': _, 'ckpt.load_enable': __, ...lasting } = options as Options;
  // The number of threads decides the last bits of sampled log-probs: a repetition takes as many.
  const threads = (values as Readonly<Record<string, unknown>>)['engine.threads'] ?? availableParallelism();
  const pinned = 'engine.threads' in options ? { ...values, 'engine.threads': threads } : values;
  try {
    await writeFileAtomic(config, toYaml(pinned as Values<Options>, lasting));
  } catch (error) {
    await lock.release();
    throw error;
  }
  return lock;
}

/** `ckpt.max_mem` in bytes. */
export function bytesOf(gigabytes: number | undefined): number | undefined {
  return gigabytes === undefined ? undefined : gigabytes * 1e9;
}
