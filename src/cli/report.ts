import { messageOf } from '../episode/failure.ts';
import type { ConsoleStream } from '../tracking/console.ts';

/** Exit code of an error: 2 for bad input (an error that says so), 1 for everything else. */
export function exitCodeOf(error: unknown): number {
  return (error as { exitCode?: unknown } | null)?.exitCode === 2 ? 2 : 1;
}

/** Prints what the user should read of an error, its stack only when asked for, and gives the exit code. */
export function reportError(error: unknown, stderr: ConsoleStream, verbose: boolean): number {
  const message = messageOf(error).trim() || `an error without a message (${(error as Error)?.name})`;
  const lines = message.split('\n').map(line => `tokenloop: ${line}`);
  if (verbose && error instanceof Error) lines.push(error.stack ?? '', ...causes(error));
  stderr.write(`${lines.join('\n')}\n`);
  return exitCodeOf(error);
}

function causes(error: Error): string[] {
  const { cause } = error;
  if (!(cause instanceof Error)) return cause === undefined ? [] : [`caused by: ${String(cause)}`];
  return [`caused by: ${cause.stack ?? cause.message}`, ...causes(cause)];
}
