import { type JsonServer, jsonServer, Refusal } from './json-server.ts';

export interface MlflowMetric {
  readonly key: string;
  readonly value: number | string;
  readonly timestamp: number;
  readonly step: number;
}

export interface MlflowRun {
  readonly experiment: string;
  readonly name: string;
  readonly params: Map<string, string>;
  readonly metrics: MlflowMetric[];
  status: string;
}

export interface MlflowServer extends JsonServer {
  readonly runs: ReadonlyMap<string, MlflowRun>;
}

const KEY = /^[\w\-. /:]{1,250}$/;

/** The part of MLflow's REST interface that a run needs, with its limits; tools/trackers/mlflow.ts asks a real one. */
export async function mlflowServer(authorization: string | undefined): Promise<MlflowServer> {
  const experiments = new Map<string, string>();
  const runs = new Map<string, MlflowRun>();
  const runOf = (id: unknown): MlflowRun => {
    const run = runs.get(String(id));
    if (!run) throw new Refusal(404, `RESOURCE_DOES_NOT_EXIST: no run ${id}`);
    return run;
  };
  const described = (id: string, run: MlflowRun) => {
    const latest = new Map(run.metrics.map(({ key, value, step }) => [key, { key, value, step: String(step) }]));
    const info = { run_id: id, experiment_id: run.experiment, status: run.status };
    return { run: { info, data: { metrics: [...latest.values()] } } };
  };

  const server = await jsonServer(({ method, path, query, headers, body }) => {
    if (headers.authorization !== authorization) throw new Refusal(401, `not the key: ${headers.authorization}`);
    const name = path.replace('/api/2.0/mlflow/', '');
    if (method !== (name.includes('/get') ? 'GET' : 'POST')) throw new Refusal(405, `${name} by ${method}`);
    switch (name) {
      case 'experiments/get-by-name': {
        const id = experiments.get(query.get('experiment_name') ?? '');
        if (id !== undefined) return { experiment: { experiment_id: id } };
        return missing();
      }
      case 'experiments/create':
        experiments.set(body.name, String(experiments.size + 1));
        return { experiment_id: experiments.get(body.name) };
      case 'runs/create': {
        if (![...experiments.values()].includes(body.experiment_id)) throw new Refusal(404, 'no such experiment');
        if (!Number.isInteger(body.start_time)) throw new Refusal(400, `start_time ${body.start_time}`);
        const id = `run${runs.size}`;
        const fresh = { experiment: body.experiment_id, name: body.run_name, params: new Map(), metrics: [] };
        runs.set(id, { ...fresh, status: 'RUNNING' });
        return described(id, runs.get(id)!);
      }
      case 'runs/get':
        return described(query.get('run_id')!, runOf(query.get('run_id')));
      case 'runs/log-batch': {
        const run = runOf(body.run_id);
        const { metrics = [], params = [] } = body as {
          metrics?: MlflowMetric[];
          params?: { key: string; value: string }[];
        };
        if (metrics.length > 1000 || params.length > 100) throw new Refusal(400, 'too many in one request');
        for (const { key, value } of params) {
          if (!KEY.test(key) || value.length > 6000) throw new Refusal(400, `param ${key}`);
          run.params.set(key, value);
        }
        for (const metric of metrics) log(run, metric);
        return {};
      }
      case 'runs/update':
        runOf(body.run_id).status = body.status;
        return { run_info: {} };
      default:
        throw new Refusal(404, 'no such endpoint');
    }
  });
  return { ...server, runs };
}

function log(run: MlflowRun, metric: MlflowMetric): void {
  const { key, value, timestamp, step } = metric;
  const finite = typeof value === 'number' || ['NaN', 'Infinity', '-Infinity'].includes(value);
  if (!KEY.test(key) || !finite) throw new Refusal(400, `metric ${key} ${value}`);
  if (!Number.isInteger(timestamp) || !Number.isInteger(step)) throw new Refusal(400, `metric ${key} at ${timestamp}`);
  const same = run.metrics.some(one => one.key === key && one.timestamp === timestamp && one.step === step);
  if (!same) run.metrics.push(metric);
}

function missing(): never {
  throw new Refusal(404, 'RESOURCE_DOES_NOT_EXIST: no such experiment');
}
