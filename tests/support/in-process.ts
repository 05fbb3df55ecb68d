import { PassThrough } from 'node:stream';
import { dispatch } from '../../src/cli/dispatch.ts';

export interface Dispatched {
  readonly code: number;
  /** Everything said, in the pieces in which it was written. */
  readonly out: readonly string[];
  readonly err: readonly string[];
}

/** A command of the command line, run in this process: for what needs no process of its own. */
export async function dispatched(argv: readonly string[], cwd: string): Promise<Dispatched> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await dispatch(argv, {
    stdin: new PassThrough().end(),
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: (text: string) => err.push(text) },
    cwd,
    signals: { on: () => undefined, off: () => undefined, exit: () => undefined },
    verbose: false,
  });
  return { code, out, err };
}
