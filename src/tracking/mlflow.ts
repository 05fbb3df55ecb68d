import { join } from 'node:path';
import { z } from 'zod';
import type { MetricsRecord, RunEnd, Tracker } from './contracts.ts';
import { RefusedError, type RequestOptions, requestJson } from './http.ts';
import { Outbox, type Stamped } from './outbox.ts';
import { readNote, writeNote } from './run-note.ts';

export interface MlflowOptions {
  /** Directory of the run, where its id on the server is noted. */
  readonly dir: string;
  /** Address of the server, without credentials. */
  readonly trackingUri: string;
  /** From the environment (`MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and `…_PASSWORD`). */
  readonly credentials?: { readonly token: string } | { readonly user: string; readonly password: string } | undefined;
  readonly experiment: string;
  readonly runName?: string | undefined;
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** Continue the run that is noted in `dir`. */
  readonly resumeAfter?: number | undefined;
  /** Told the address of the run when it is there. */
  readonly announce?: ((message: string) => void) | undefined;
  /** Longest time that closing waits for the network; 20 s when not given. */
  readonly closeMs?: number | undefined;
}

type Item = Stamped & ({ readonly metrics: MetricsRecord['metrics']; readonly at: number } | { readonly end: RunEnd });

/** Most of one request. Source: https://mlflow.org/docs/latest/rest-api.html#request-limits. */
const METRICS = 1000;
const PARAMS = 100;
const PARAM_LENGTH = 6000;
const STATUS: Readonly<Record<RunEnd, string>> = { finished: 'FINISHED', failed: 'FAILED', interrupted: 'KILLED' };

const Note = z.object({ runId: z.string() });
const Experiment = z.object({ experiment: z.object({ experiment_id: z.string() }) });
const Created = z.object({ experiment_id: z.string() });
const Run = z.object({
  run: z.object({
    info: z.object({ run_id: z.string(), experiment_id: z.string() }),
    data: z.object({ metrics: z.array(z.object({ key: z.string(), step: z.coerce.number() })).default([]) }).optional(),
  }),
});

/**
 * Metrics on an MLflow server, over its REST interface (https://mlflow.org/docs/latest/rest-api.html). Nothing is there
 * twice: a repeated request carries the same times, which the server takes for the same metric, and a resumed run
 * leaves out what the server has of a step.
 */
export async function mlflowTracker(options: MlflowOptions): Promise<Tracker> {
  const { dir, trackingUri, experiment, runName, config = {}, resumeAfter, announce, closeMs } = options;
  const note = join(dir, 'mlflow.json');
  const noted = resumeAfter === undefined ? undefined : Note.optional().parse(await readNote(note));
  const root = trackingUri.replace(/\/+$/, '');
  const request = authorised(options.credentials);
  const call = (path: string, body: object | undefined, signal: AbortSignal) =>
    requestJson(`${root}/api/2.0/mlflow/${path}`, { ...request, body, signal, method: body ? 'POST' : 'GET' });

  const experimentId = async (signal: AbortSignal) => {
    const query = new URLSearchParams({ experiment_name: experiment });
    try {
      const found = Experiment.parse(await call(`experiments/get-by-name?${query}`, undefined, signal));
      return found.experiment.experiment_id;
    } catch (error) {
      if (!(error instanceof RefusedError && error.message.includes('RESOURCE_DOES_NOT_EXIST'))) throw error;
      return Created.parse(await call('experiments/create', { name: experiment }, signal)).experiment_id;
    }
  };
  let created: z.infer<typeof Run>['run'] | undefined;
  const create = async (signal: AbortSignal) => {
    // A second attempt, after one that came only so far, goes on with the run of the first.
    if (created === undefined) {
      const start = { experiment_id: await experimentId(signal), start_time: Date.now() };
      created = Run.parse(await call('runs/create', { ...start, run_name: runName }, signal)).run;
      await writeNote(note, { runId: created.info.run_id });
    }
    const params = Object.entries(config).map(([key, value]) => ({ key: keyOf(key), value: paramOf(value) }));
    for (const some of chunks(params, PARAMS)) {
      await call('runs/log-batch', { run_id: created.info.run_id, params: some }, signal);
    }
    return created;
  };
  const find = async (runId: string, signal: AbortSignal) => {
    await call('runs/update', { run_id: runId, status: 'RUNNING' }, signal);
    return Run.parse(await call(`runs/get?${new URLSearchParams({ run_id: runId })}`, undefined, signal)).run;
  };
  let run: { readonly id: string; readonly last: ReadonlyMap<string, number> } | undefined;
  const connect = async (signal: AbortSignal) => {
    const { info, data } = await (noted ? find(noted.runId, signal) : create(signal));
    announce?.(`mlflow: ${root}/#/experiments/${info.experiment_id}/runs/${info.run_id}`);
    return { id: info.run_id, last: new Map(data?.metrics.map(({ key, step }) => [key, step])) };
  };
  const send = async (items: readonly Item[], signal: AbortSignal) => {
    run ??= await connect(signal);
    const { id, last } = run;
    const metrics = items.flatMap(item => ('metrics' in item ? metricsOf(item, last) : []));
    for (const some of chunks(metrics, METRICS)) await call('runs/log-batch', { run_id: id, metrics: some }, signal);
    const end = items.flatMap(item => ('end' in item ? item.end : [])).at(-1);
    if (end) await call('runs/update', { run_id: id, status: STATUS[end], end_time: Date.now() }, signal);
  };
  const outbox = new Outbox<Item>({ send, closeMs });

  let reached = resumeAfter ?? 0;
  return {
    name: 'mlflow',
    log: ({ step, metrics }) => {
      reached = step;
      outbox.push({ step, metrics, at: Date.now() });
    },
    close: async (end = 'finished') => {
      try {
        outbox.push({ step: reached, end });
      } finally {
        await outbox.close();
      }
    },
  };
}

/** The metrics of a record that the server does not have. */
function metricsOf({ step, metrics, at }: Extract<Item, { at: number }>, last: ReadonlyMap<string, number>) {
  return Object.entries(metrics).flatMap(([name, value]) => {
    const key = keyOf(name);
    if ((last.get(key) ?? -1) >= step) return [];
    // JSON has no other way to write these; protocol buffers read them so.
    return { key, value: Number.isFinite(value) ? value : String(value), timestamp: at, step };
  });
}

/** Names hold letters, digits and a few marks; anything else becomes an underscore. */
function keyOf(name: string): string {
  return name.replace(/[^\w\-. /:]/g, '_').slice(0, 250);
}

function paramOf(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, PARAM_LENGTH);
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

function authorised(credentials: MlflowOptions['credentials']): Pick<RequestOptions, 'headers' | 'secrets'> {
  if (credentials === undefined) return { headers: {}, secrets: [] };
  if ('token' in credentials) {
    return { headers: { authorization: `Bearer ${credentials.token}` }, secrets: [credentials.token] };
  }
  const { user, password } = credentials;
  const basic = Buffer.from(`${user}:${password}`).toString('base64');
  return { headers: { authorization: `Basic ${basic}` }, secrets: [password, `${user}:${password}`] };
}
