import { z } from 'zod';
import { options } from '../options/option.ts';

/** What a command shows while it works. */
export const progressOptions = options({
  quiet: {
    schema: z.boolean().default(false),
    help: 'Show no progress and no report: warnings, errors and the last line with the result only',
  },
  json: {
    schema: z.boolean().default(false),
    help: 'One JSON object a step on the standard output, with every metric; everything for people goes to standard error',
  },
  'logger.logging_steps': {
    schema: z.number().int().positive().default(1),
    help: 'Plain console lines come at most this often; metrics.jsonl has every step',
    unit: 'steps',
    aliases: ['logging_steps'],
  },
  'logger.console_interval': {
    schema: z.number().min(0).default(5),
    help: 'Shortest time between two plain console lines, where the output is no terminal',
    unit: 's',
  },
});

/** Where the numbers of a run go beside its directory. */
export const trackerOptions = options({
  'logger.tensorboard_dir': {
    schema: z.string().min(1).optional(),
    help: 'Write event files for TensorBoard to <this directory>/<name of the run>',
    aliases: ['use_tensorboard'],
  },
  'logger.wandb.mode': {
    schema: z.enum(['off', 'online', 'offline']).default('off'),
    help: 'Weights & Biases: online sends every step (the key comes from WANDB_API_KEY, another server from WANDB_BASE_URL); offline writes what `wandb sync` sends later',
  },
  'logger.wandb.org': {
    schema: z.string().min(1).optional(),
    help: 'Weights & Biases: team or user that owns the run; the default of the key when not given',
    aliases: ['wandb_org'],
  },
  'logger.wandb.group': {
    schema: z.string().min(1).optional(),
    help: 'Weights & Biases: group of the run',
    aliases: ['wandb_group'],
  },
  'logger.wandb.project': {
    schema: z.string().min(1).default('tokenloop'),
    help: 'Weights & Biases: project of the run',
    aliases: ['wandb_project'],
  },
  'logger.wandb.run_name': {
    schema: z.string().min(1).optional(),
    help: 'Name of the run on Weights & Biases, MLflow and in TensorBoard; that of its directory when not given',
    aliases: ['wandb_run_name'],
  },
  'logger.mlflow.tracking_uri': {
    schema: z
      .url({ protocol: /^https?$/, error: 'expected the address of an MLflow server, http://… or https://…' })
      .refine(uri => !/\/\/[^/]*@/.test(uri), {
        error: 'credentials come from MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD',
      })
      .optional(),
    help: 'Log to the MLflow server at this address (credentials come from the environment: MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD)',
  },
  'logger.mlflow.experiment': {
    schema: z.string().min(1).default('tokenloop'),
    help: 'MLflow: experiment of the run; made when it is not there',
  },
});

/** Traces of episodes. */
export const tracingOptions = options({
  'logger.otel_enable': {
    schema: z.boolean().default(false),
    help: "Trace episodes through OpenTelemetry's API (package @opentelemetry/api): an SDK that exports them is registered by the program, e.g. with NODE_OPTIONS='--import ./tracing.mjs'",
  },
});

export const trackingOptions = options({
  'run.dir': {
    schema: z.string().min(1).optional(),
    help: 'Directory of the run: resolved configuration, metrics, episodes, checkpoints; none = runs/<recipe>-<time>',
  },
  'logger.episodes_enable': {
    schema: z.boolean().default(true),
    help: 'Write every episode to episodes.jsonl',
  },
  ...progressOptions,
  ...trackerOptions,
  ...tracingOptions,
});
