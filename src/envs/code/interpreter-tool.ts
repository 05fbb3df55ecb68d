import { z } from 'zod';
import { EpisodeError, messageOf } from '../../episode/failure.ts';
import type { Evaluation, Interpreter, Language } from '../../sandbox/contracts.ts';
import { openSandbox } from '../../sandbox/sandbox.ts';
import type { SandboxOptions } from '../../sandbox/settings.ts';
import { resourcePool } from '../resources/pool.ts';
import type { Tool, ToolResult } from '../tools/contracts.ts';
import { defineTool } from '../tools/define.ts';

export interface InterpreterToolOptions {
  readonly language: Language;
  /** What the policy writes; the language when not given. */
  readonly name?: string | undefined;
  /** Sessions at once; episodes beyond wait for one. 16 when not given. */
  readonly max?: number | undefined;
  /** Sessions started with the tool, ahead of the first call; none when not given. */
  readonly warm?: number | undefined;
  readonly sandbox?: SandboxOptions | undefined;
}

/** The session of one episode; begun anew when a cell has ended it. */
interface Session {
  interpreter: Interpreter;
}

const LANGUAGES: Readonly<Record<Language, string>> = { python: 'Python', javascript: 'JavaScript' };

/**
 * A tool that runs code in an interpreter session of its episode: what one call defines, the next one has. A cell that
 * fails, or that a limit ends, is a failed call that says what happened; after a limit the session begins anew. The
 * pool gives every episode a session of its own, ended with the episode.
 */
export function interpreterTool(options: InterpreterToolOptions): Tool {
  const { language, name = language, max = 16, warm = 0 } = options;
  const sandbox = openSandbox({ warm: 0, ...options.sandbox });
  const pool = resourcePool<Session>(
    {
      name: `${name} sessions`,
      create: async () => ({ interpreter: await sandbox.start(language) }),
      healthy: ({ interpreter }) => interpreter.alive,
      destroy: ({ interpreter }) => interpreter.close(),
    },
    { max },
  );
  // What cannot be started is told to the first episode that asks for a session.
  pool.warm(warm).catch(() => undefined);
  return defineTool({
    name,
    description: `Runs ${LANGUAGES[language]} code and returns what it prints, and the value of its last expression. State is kept between calls. There is no network.`,
    parameters: z.object({ code: z.string().describe(`${LANGUAGES[language]} code`) }),
    pool,
    async execute({ code }, { resource, signal }): Promise<ToolResult> {
      const session = resource as Session;
      if (!session.interpreter.alive) {
        try {
          session.interpreter = await sandbox.start(language);
        } catch (error) {
          throw new EpisodeError('tool', `tool ${name}: ${messageOf(error)}`, { cause: error });
        }
      }
      const stop = () => void session.interpreter.close();
      signal.addEventListener('abort', stop, { once: true });
      try {
        return resultOf(await session.interpreter.exec(code), session.interpreter.alive);
      } finally {
        signal.removeEventListener('abort', stop);
      }
    },
  });
}

function resultOf({ ending, stdout, stderr, value, error }: Evaluation, alive: boolean): ToolResult {
  const parts = [stdout, stderr, value ?? '', error ?? ''].map(text => text.trimEnd()).filter(text => text !== '');
  if (!alive) parts.push('The session has ended; the next call begins a new one, without what was defined before.');
  const content = parts.length === 0 ? '(no output)' : parts.join('\n');
  return { content, failed: ending !== 'ok' };
}
