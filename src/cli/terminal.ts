import type { ConsoleStream } from '../tracking/console.ts';
import { liveRegion } from '../tracking/live-region.ts';

/** Environment variables. */
export type Env = Readonly<Record<string, string | undefined>>;

/**
 * The two outputs of a command. On a terminal they share one live region, so that what either writes stands above it.
 * With CI set, or on a terminal that cannot move its cursor, there is no region; NO_COLOR takes the colours away
 * (https://no-color.org).
 */
export function terminal(
  { stdout, stderr }: { readonly stdout: ConsoleStream; readonly stderr: ConsoleStream },
  env: Env,
): { readonly stdout: ConsoleStream; readonly stderr: ConsoleStream } {
  const isTTY = Boolean(stdout.isTTY) && !set(env.CI) && env.TERM !== 'dumb';
  const color = isTTY && !set(env.NO_COLOR);
  if (!isTTY) return { stdout: facade(stdout, text => stdout.write(text), { isTTY, color }), stderr };
  const region = liveRegion(stdout);
  return {
    stdout: facade(stdout, text => region.above(text), { isTTY, color, region }),
    stderr: facade(stderr, text => region.above(text, stderr), {}),
  };
}

function set(variable: string | undefined): boolean {
  return variable !== undefined && variable !== '' && variable !== '0' && variable !== 'false';
}

function facade(stream: ConsoleStream, write: (text: string) => unknown, more: Partial<ConsoleStream>): ConsoleStream {
  return {
    write,
    get columns() {
      return stream.columns;
    },
    on: (event, listener) => stream.on?.(event, listener),
    off: (event, listener) => stream.off?.(event, listener),
    isTTY: stream.isTTY,
    ...more,
  };
}
