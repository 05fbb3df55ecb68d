import type { Readable } from 'node:stream';
import type { Options, Values } from '../options/option.ts';
import type { ConsoleStream } from '../tracking/console.ts';
import type { Interrupt } from './signals.ts';
import type { Env } from './terminal.ts';

/** What a command is given beside its options. Commands reach the outside world only through it. */
export interface CommandContext<T extends Options> {
  readonly values: Values<T>;
  /** Path given by `--config`. */
  readonly configFile?: string;
  readonly cwd: string;
  /** Environment variables; none when not given. */
  readonly env?: Env;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: ConsoleStream;
  readonly stderr: ConsoleStream;
  /** Ctrl-C: long commands finish their step and return when its signal aborts. */
  readonly interrupt: Interrupt;
}

/**
 * One command of the command line. The module that declares it stays light, so that `--help` needs no engine: `run`
 * imports what is heavy. It resolves when the command is done, with an exit code unless that is 0, and has then closed
 * everything that would keep the process alive; it throws what the user should read.
 */
export interface Command<T extends Options = Options> {
  readonly name: string;
  readonly options: T;
  /** Lines that follow the summary in `--help`. */
  readonly details?: string;
  run(context: CommandContext<T>): Promise<number | undefined>;
}

/** Keeps the types of the options. */
export function defineCommand<const T extends Options>(command: Command<T>): Command<T> {
  return command;
}
