import { resolve } from 'node:path';
import { z } from 'zod';
import { compose, pick } from '../config/compose.ts';
import { ConfigError } from '../config/error.ts';
import { options } from '../options/option.ts';
import { rewardModelOptions } from '../rewards/model/options.ts';
import type { Scorer } from '../rewards/model/scorer.ts';
import { serveRewards } from '../rewards/serve/server.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { listenOptions } from './listen-options.ts';
import { openRewardModel, rewardEngineOptions } from './reward-model.ts';

const serveRmOptions = compose(
  options({
    'reward.model_name_or_path': {
      ...rewardModelOptions['reward.model_name_or_path'],
      schema: z.string().min(1),
    },
    'data.max_len': {
      schema: z.int().min(2).optional(),
      help: 'Longest text; of a longer one the beginning is left out, never the answer. Without it the window of the model',
      unit: 'tokens',
      aliases: ['max_len'],
    },
    batch_size: {
      schema: z.int().min(1).default(64),
      help: 'Texts scored together at most, of all requests under way',
      unit: 'texts',
    },
    'serve.max_wait_ms': {
      schema: z.number().min(0).default(2),
      help: 'How long a text waits for others while nothing is being scored',
      unit: 'ms',
    },
    'serve.max_queue': {
      schema: z.int().min(1).default(65_536),
      help: 'Texts that may wait; a request that brings more is answered with 429',
      unit: 'texts',
    },
    'serve.key_env': {
      schema: z.string().min(1).optional(),
      help: 'Environment variable with the key that clients must give as authorization: Bearer; without it nobody needs one',
    },
  }),
  pick(rewardModelOptions, 'reward.model_revision', 'reward.normalize_enable'),
  listenOptions,
  rewardEngineOptions,
);
type ServeRmContext = Pick<
  CommandContext<typeof serveRmOptions>,
  'values' | 'cwd' | 'env' | 'stdout' | 'stderr' | 'interrupt'
>;

export const command = defineCommand({
  name: 'serve-rm',
  options: serveRmOptions,
  details: `POST /get_reward takes {"query": [texts]} and gives {"rewards": [numbers]}, as OpenRLHF's reward servers do;
/health and /metrics (Prometheus) are beside it. Ctrl-C answers what is under way and stops.`,
  run: serveRm,
});

/** Serves until the command is interrupted. */
export async function serveRm(context: ServeRmContext): Promise<undefined> {
  const { values, env = {} } = context;
  const variable = values['serve.key_env'];
  const key = variable === undefined ? undefined : env[variable];
  if (variable !== undefined && !key) {
    throw new ConfigError([`serve.key_env is ${variable}, and this environment variable is not set`]);
  }
  const model = await openRewardModel({ ...values, 'reward.max_len': values['data.max_len'] }, context);
  try {
    await serve(model.scorer, key, context);
  } finally {
    await model.close();
  }
}

async function serve(
  scorer: Scorer,
  key: string | undefined,
  { values, cwd, stdout, stderr, interrupt }: ServeRmContext,
): Promise<void> {
  const name = values['reward.model_name_or_path'];
  const server = await serveRewards({
    scorer,
    model: name,
    key,
    host: values['serve.host'],
    port: values['serve.port'],
    maxBatch: values.batch_size,
    maxWaitMs: values['serve.max_wait_ms'],
    maxQueue: values['serve.max_queue'],
    onError: message => stderr.write(`${message}\n`),
  });
  stdout.write(`model ${resolve(cwd, name)}\nurl ${server.url}\n`);
  try {
    const { signal } = interrupt;
    if (!signal.aborted) await new Promise(done => signal.addEventListener('abort', done, { once: true }));
  } finally {
    await server.close();
  }
}
