import { readFileSync } from 'node:fs';
import { helpText } from '../config/describe.ts';
import { resolve } from '../config/load.ts';
import { nearest } from '../options/nearest.ts';
import type { Options } from '../options/option.ts';
import type { Command, CommandContext } from './command.ts';
import { reportError } from './report.ts';
import { expandResume } from './resume.ts';
import { INTERRUPTED, onInterrupt, type SignalSource } from './signals.ts';
import { terminal } from './terminal.ts';

export interface Io extends Pick<CommandContext<Options>, 'stdin' | 'stdout' | 'stderr' | 'cwd' | 'env'> {
  readonly signals: SignalSource;
  /** Errors come with their stack. */
  readonly verbose: boolean;
}

/** Name → summary and module, which is loaded when the command is used. */
export type Commands = Readonly<
  Record<string, { readonly summary: string; readonly load: () => Promise<{ readonly command: Command }> }>
>;

export const COMMANDS: Commands = {
  rl: { summary: 'Train a policy by reinforcement learning', load: () => import('./rl.ts') },
  sft: { summary: 'Train a policy on demonstrations', load: () => import('./sft.ts') },
  rm: { summary: 'Train a reward model on pairs of answers', load: () => import('./rm.ts') },
  dpo: { summary: 'Train a policy on pairs of answers', load: () => import('./dpo.ts') },
  data: { summary: 'Show what a model sees of a dataset', load: () => import('./data.ts') },
  eval: { summary: 'Evaluate a policy on tasks', load: () => import('./eval.ts') },
  play: { summary: 'Play an environment yourself', load: () => import('./play.ts') },
  generate: { summary: 'Let a policy answer a prompt', load: () => import('./generate.ts') },
  serve: { summary: 'Serve a policy to agents of other processes and record them', load: () => import('./serve.ts') },
  'serve-env': {
    summary: 'Serve an environment to runs in other processes and on other machines',
    load: () => import('./serve-env.ts'),
  },
  'serve-rm': { summary: 'Serve a reward model over HTTP', load: () => import('./serve-rm.ts') },
  merge: { summary: 'Merge a LoRA adapter into its model', load: () => import('./merge.ts') },
  init: { summary: 'Begin an environment of your own, with its test', load: () => import('./init.ts') },
  doctor: { summary: 'Check that this machine can train', load: () => import('./doctor.ts') },
};

/** Runs the command that argv names. Resolves to the exit code: 0, 1 failure, 2 bad input, 130 interrupted. */
export async function dispatch(argv: readonly string[], io: Io, commands: Commands = COMMANDS): Promise<number> {
  const [name, ...rest] = argv;
  if (name === '--version' || name === '-v') {
    io.stdout.write(`${version()}\n`);
    return 0;
  }
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    io.stdout.write(usage(commands));
    return 0;
  }
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) {
    const close = nearest(name, Object.keys(commands));
    const advice = close ? `did you mean ${close}?` : 'tokenloop --help lists the commands';
    io.stderr.write(`tokenloop: unknown command ${name}; ${advice}\n`);
    return 2;
  }
  try {
    const { command } = await entry.load();
    return await runCommand(command, entry.summary, rest, io);
  } catch (error) {
    return reportError(error, io.stderr, io.verbose);
  }
}

async function runCommand(
  command: Command,
  summary: string,
  argv: readonly string[],
  { stdin, cwd, env = {}, signals, ...outputs }: Io,
): Promise<number> {
  const { stdout, stderr } = terminal(outputs, env);
  if (argv.includes('--help') || argv.includes('-h')) {
    stdout.write(commandHelp(command, summary));
    return 0;
  }
  const words = expandResume(argv, command.options, cwd);
  const { values, notices, configFile } = resolve(command.options, { argv: words, cwd });
  const interrupt = onInterrupt(signals, message => stderr.write(`\n${message}\n`));
  try {
    for (const notice of notices) stderr.write(`tokenloop: ${notice}\n`);
    const context = { values, cwd, env, stdin, stdout, stderr, interrupt };
    const code = await command.run(configFile === undefined ? context : { ...context, configFile });
    return interrupt.signal.aborted ? INTERRUPTED : (code ?? 0);
  } catch (error) {
    const { aborted, reason } = interrupt.signal;
    if (aborted && (error === reason || (error as Error)?.name === 'AbortError')) return INTERRUPTED;
    throw error;
  } finally {
    interrupt.dispose();
  }
}

function usage(commands: Commands): string {
  const width = Math.max(...Object.keys(commands).map(name => name.length));
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `tokenloop ${version()}: agentic reinforcement learning for language models

tokenloop <command> [--config file.yaml] [--dotted.flag value] [dotted.key=value]

${lines.join('\n')}

tokenloop <command> --help lists the options of a command; --verbose shows the stack of an error.
`;
}

function commandHelp({ name, options, details }: Command, summary: string): string {
  return `tokenloop ${name}: ${summary}

tokenloop ${[name, ...bareWords(options)].join(' ')} [--config file.yaml] [--dotted.flag value] [dotted.key=value]
${details ? `\n${details}\n` : ''}
${helpText(options)}
`;
}

/** Options that are given as bare words, by their last names: `<env>`. */
function bareWords(options: Options): string[] {
  const placed = Object.entries(options).filter(([, { position }]) => position !== undefined);
  return placed
    .sort(([, a], [, b]) => a.position! - b.position!)
    .map(([option]) => `[${option.slice(option.lastIndexOf('.') + 1)}]`);
}

/** Of this package, from its package.json, which lies two folders above both src/cli and dist/cli. */
export function version(): string {
  const path = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}
