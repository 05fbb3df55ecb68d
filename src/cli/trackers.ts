import { basename, join, resolve } from 'node:path';
import type { Executor } from '../agents/contracts.ts';
import { traced } from '../agents/traced.ts';
import { withoutCredentials } from '../config/credentials.ts';
import { ConfigError } from '../config/error.ts';
import { messageOf } from '../episode/failure.ts';
import type { Values } from '../options/option.ts';
import type { Tracker } from '../tracking/contracts.ts';
import { type MlflowOptions, mlflowTracker } from '../tracking/mlflow.ts';
import type { tracingOptions, trackerOptions } from '../tracking/options.ts';
import { otelTracing } from '../tracking/otel.ts';
import { tensorboardTracker } from '../tracking/tensorboard.ts';
import { type WandbOptions, wandbTracker } from '../tracking/wandb.ts';
import { wandbOfflineTracker } from '../tracking/wandb-offline.ts';
import type { Env } from './terminal.ts';

/** What a tracker needs to know of the run. */
export interface TrackedRun {
  readonly dir: string;
  /** All options by name. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly resumeAfter?: number | undefined;
  readonly decode?: ((tokens: Int32Array) => string) | undefined;
  readonly announce: (message: string) => void;
}

/**
 * The trackers that the options name; they are opened when there is a run.
 * @throws ConfigError when a key is missing, before anything else is done
 */
export function trackersFromOptions(
  values: Values<typeof trackerOptions>,
  { env, cwd }: { readonly env: Env; readonly cwd: string },
): (run: TrackedRun) => Promise<Tracker[]> {
  const { 'logger.tensorboard_dir': events, 'logger.wandb.mode': mode, 'logger.mlflow.tracking_uri': mlflow } = values;
  const { WANDB_API_KEY: apiKey, WANDB_BASE_URL: baseUrl } = env;
  if (mode === 'online' && !apiKey) {
    throw new ConfigError([
      'logger.wandb.mode online needs a key in the environment variable WANDB_API_KEY (https://wandb.ai/authorize); offline needs none',
    ]);
  }
  const openers: ((run: TrackedRun, name: string) => Promise<Tracker>)[] = [];
  if (events !== undefined) {
    openers.push(({ values: all, decode, resumeAfter }, name) => {
      const config = JSON.stringify(shown(all), null, 2);
      return tensorboardTracker({ dir: join(resolve(cwd, events), name), decode, resumeAfter, config });
    });
  }
  const wandb = ({ dir, values: all, resumeAfter, announce }: TrackedRun, runName: string) =>
    ({
      dir,
      project: values['logger.wandb.project'],
      entity: values['logger.wandb.org'],
      group: values['logger.wandb.group'],
      runName,
      config: shown(all),
      resumeAfter,
      announce,
    }) satisfies Partial<WandbOptions>;
  if (mode === 'online') openers.push((run, name) => wandbTracker({ ...wandb(run, name), apiKey: apiKey!, baseUrl }));
  if (mode === 'offline') openers.push((run, name) => wandbOfflineTracker(wandb(run, name)));
  if (mlflow !== undefined) {
    const server = { trackingUri: mlflow, credentials: mlflowCredentials(env) };
    openers.push(({ dir, values: all, resumeAfter, announce }, runName) => {
      const run = { dir, experiment: values['logger.mlflow.experiment'], runName, config: shown(all) };
      return mlflowTracker({ ...server, ...run, resumeAfter, announce });
    });
  }
  return run => {
    const name = values['logger.wandb.run_name'] ?? basename(run.dir);
    return Promise.all(openers.map(open => open(run, name)));
  };
}

/** The agent, traced if the options say so. */
export async function tracedAgent(agent: Executor, values: Values<typeof tracingOptions>): Promise<Executor> {
  if (!values['logger.otel_enable']) return agent;
  try {
    return traced(agent, await otelTracing());
  } catch (cause) {
    throw new ConfigError([`logger.otel_enable: ${messageOf(cause)}`], { cause });
  }
}

function mlflowCredentials(env: Env): MlflowOptions['credentials'] {
  const { MLFLOW_TRACKING_TOKEN: token, MLFLOW_TRACKING_USERNAME: user, MLFLOW_TRACKING_PASSWORD: password } = env;
  if (token) return { token };
  return user && password ? { user, password } : undefined;
}

/** Options that have a value, without credentials that stand in an address. */
function shown(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name, typeof value === 'string' ? withoutCredentials(value) : value]),
  );
}
