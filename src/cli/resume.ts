import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from '../config/error.ts';
import { compareOptions } from '../config/resume.ts';
import type { Options } from '../options/option.ts';
import type { ConsoleStream } from '../tracking/console.ts';
import { latestCheckpoint, readTrainerState, type TrainerState } from '../training/checkpoint.ts';
import type { RunDirectory } from './run-directory.ts';

/** A checkpoint that a run continues from. */
export interface ResumePoint {
  readonly directory: string;
  readonly state: TrainerState;
}

/** `--resume runs/x` stands for the configuration of that run, its directory, and continuing. Later words win. */
export function expandResume(argv: readonly string[], options: Options, cwd: string): string[] {
  const words = argv.flatMap(word => (word.startsWith('--resume=') ? ['--resume', word.slice(9)] : [word]));
  const at = words.indexOf('--resume');
  if (at < 0) return [...argv];
  if (!('ckpt.load_enable' in options)) throw new ConfigError(['--resume: this command has no runs to continue']);
  const directory = words[at + 1];
  if (directory === undefined || directory.startsWith('--')) {
    throw new ConfigError(['--resume needs the directory of the run to continue, as in --resume runs/first']);
  }
  if (words.includes('--config')) {
    throw new ConfigError([`--resume ${directory} takes the configuration of that run; leave --config out`]);
  }
  const config = join(directory, 'config.yaml');
  if (!existsSync(resolve(cwd, config))) {
    throw new ConfigError([`--resume ${directory}: there is no run in it (looked for ${resolve(cwd, config)})`]);
  }
  const meaning = ['--config', config, '--run.dir', directory, '--ckpt.load_enable'];
  return [...words.slice(0, at), ...meaning, ...words.slice(at + 2)];
}

/**
 * The newest whole checkpoint of a run that is to continue; undefined when it is not, or when there is none.
 * @throws ConfigError when the options have changed in a way that its state does not fit
 */
export async function resumePoint(
  run: RunDirectory,
  values: Readonly<Record<string, unknown>> & { readonly 'ckpt.load_enable': boolean },
  stderr: ConsoleStream,
): Promise<ResumePoint | undefined> {
  if (!values['ckpt.load_enable']) return undefined;
  const say = (message: string) => stderr.write(`${message}\n`);
  const directory = await latestCheckpoint(run.checkpoints, say);
  if (directory === undefined) {
    say(`no checkpoint in ${run.checkpoints}: starting from the beginning`);
    return undefined;
  }
  const state = readTrainerState(directory);
  const { refused, changed } = compareOptions(state.config ?? {}, state.config ? values : {});
  if (refused.length > 0) throw new ConfigError(refused);
  for (const line of changed) say(line);
  return { directory, state };
}
