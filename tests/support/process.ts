import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The repository's root. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

const main = join(root, 'src/cli/main.ts');
const tsx = pathToFileURL(join(root, 'node_modules/tsx/dist/loader.mjs')).href;

/** A process that is still there after so long is killed, so that one which hangs fails its test and no other. */
const HANGING_MS = 50_000;

export interface Ended {
  /** Null when a signal ended the process. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves as soon as the stream has said `text`; rejects when the process ends without it. */
  said(stream: 'stdout' | 'stderr', text: string): Promise<void>;
}

interface Surroundings {
  readonly cwd: string;
  /** Modules loaded before the program. */
  readonly imports?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; it is empty when not given and stays open when null. */
  readonly input?: string | null;
  /** Size that no file written may pass, in KiB (not on Windows): to the program it is as if the disk were full. */
  readonly fileLimit?: number;
}

/** Starts the executable from its TypeScript sources. */
export function start(argv: readonly string[], surroundings: Surroundings): Running {
  return startNode([main, ...argv], surroundings);
}

/** The executable from start to end. */
export function tokenloop(argv: readonly string[], surroundings: Surroundings): Promise<Ended> {
  return start(argv, surroundings).ended;
}

/** Starts Node with TypeScript understood. */
export function startNode(argv: readonly string[], surroundings: Surroundings): Running {
  const { cwd, imports = [], env = {}, input = '', fileLimit } = surroundings;
  const loaders = [tsx, ...imports].flatMap(url => ['--import', url]);
  const command = [process.execPath, ...loaders, ...argv];
  const limited = ['bash', '-c', `ulimit -f ${fileLimit}; exec "$0" "$@"`, ...command];
  const [program, ...words] = fileLimit === undefined ? command : limited;
  const child = spawn(program!, words, {
    cwd,
    // The loader's own cache must not meet the limit.
    env: { ...process.env, ...(fileLimit === undefined ? {} : { TSX_DISABLE_CACHE: '1' }), ...env },
    stdio: 'pipe',
    timeout: HANGING_MS,
    killSignal: 'SIGKILL',
  });
  if (input !== null) child.stdin.end(input);
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
    });
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => resolve({ code, out: said.stdout, err: said.stderr }));
  });
  return {
    child,
    ended,
    said: (stream, text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (said[stream].includes(text)) resolve();
        };
        child[stream].on('data', look);
        child.once('close', () => reject(new Error(`the process ended without saying ${text}: ${said.stderr}`)));
        look();
      }),
  };
}
