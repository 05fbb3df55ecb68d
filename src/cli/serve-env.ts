import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { agentOptions } from '../agents/options.ts';
import { compose, pick } from '../config/compose.ts';
import { ConfigError } from '../config/error.ts';
import { serveEnvironment } from '../envs/serve/server.ts';
import { options } from '../options/option.ts';
import { agentChoiceOptions } from '../rollout/options.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { openChosen } from './environments.ts';
import { listenOptions } from './listen-options.ts';

const serveEnvOptions = compose(
  options({
    'agent.env': {
      schema: z.string().min(1).optional(),
      help: 'Environment by name, as in guess-number or guess-number@1, or a file of your own (my-env/environment.ts)',
      position: 0,
    },
  }),
  pick(agentChoiceOptions, 'agent.env_parameters'),
  listenOptions,
  options({
    'serve.key_env': {
      schema: z.string().min(1).optional(),
      help: 'Environment variable with the key that clients must give; without it one is drawn and printed',
    },
    'serve.max_sessions': {
      schema: z.int().min(1).default(1024),
      help: 'Episodes at once; who asks for one more is told to wait',
      unit: 'sessions',
    },
    'serve.session_timeout_ms': {
      schema: z.int().min(1).default(600_000),
      help: 'An episode that nobody has asked for so long is closed',
      unit: 'ms',
    },
  }),
  pick(agentOptions, 'agent.call_timeout_ms'),
);

type ServeEnvContext = Pick<
  CommandContext<typeof serveEnvOptions>,
  'values' | 'cwd' | 'env' | 'stdout' | 'stderr' | 'interrupt'
>;

export const command = defineCommand({
  name: 'serve-env',
  options: serveEnvOptions,
  details: `Prints the URL, key included, that agent.env takes on this or another machine. Ctrl-C stops.`,
  run: serveEnv,
});

/** Serves until the command is interrupted. */
export async function serveEnv({
  values,
  cwd,
  env = {},
  stdout,
  stderr,
  interrupt,
}: ServeEnvContext): Promise<undefined> {
  const name = values['agent.env'];
  if (name === undefined) throw new ConfigError(['agent.env is missing: it says which environment to serve']);
  const { make, definition } = await openChosen({ name, parameters: values['agent.env_parameters'] }, cwd);
  const variable = values['serve.key_env'];
  const key = variable === undefined ? `tl-${randomBytes(24).toString('base64url')}` : env[variable];
  if (!key) throw new ConfigError([`serve.key_env is ${variable}, and this environment variable is not set`]);
  const server = await serveEnvironment({
    make,
    key,
    environment: { name: definition?.name ?? name, version: definition?.version },
    host: values['serve.host'],
    port: values['serve.port'],
    maxSessions: values['serve.max_sessions'],
    sessionTimeoutMs: values['serve.session_timeout_ms'],
    callTimeoutMs: values['agent.call_timeout_ms'],
    onError: message => stderr.write(`${message}\n`),
  });
  const url = new URL(server.url);
  url.username = 'key';
  url.password = variable === undefined ? key : '…';
  stdout.write(`url ${decodeURI(url.href)}\n`);
  try {
    const { signal } = interrupt;
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
  } finally {
    await server.close();
  }
}
