import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mlflowTracker } from '../../src/tracking/mlflow.ts';

/**
 * A run, killed and resumed, on a real MLflow server: `npx tsx tools/trackers/mlflow.ts path/to/mlflow`.
 * Asks the server afterwards what it has.
 */
const mlflow = process.argv[2] ?? 'mlflow';
const dir = mkdtempSync(join(tmpdir(), 'tokenloop-mlflow-'));
const port = await freePort();
const root = `http://127.0.0.1:${port}`;
const server = spawn(
  mlflow,
  [
    'server',
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    '--backend-store-uri',
    `sqlite:///${dir}/mlflow.db`,
    '--workers',
    '1',
  ],
  { cwd: dir, stdio: 'ignore', detached: true },
);
try {
  await answering(server);
  const version = await (await fetch(`${root}/version`)).text();
  const open = (resumeAfter?: number) =>
    mlflowTracker({ dir, trackingUri: root, experiment: 'check', runName: 'first', config: { a: [1] }, resumeAfter });
  const killed = await open();
  const many = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`many/m${i}`, i]));
  for (const step of [1, 2, 3]) await killed.log({ step, metrics: { 'train/reward': step, 'train/kl': -1e-7 } });
  await killed.log({ step: 3, metrics: { ...many, 'odd/pass@1': 1, nan: Number.NaN, up: Infinity, down: -Infinity } });
  await killed.close('interrupted');
  const resumed = await open(2);
  for (const step of [3, 4]) await resumed.log({ step, metrics: { 'train/reward': 10 * step } });
  await resumed.close();

  // biome-ignore lint/suspicious/noExplicitAny: whatever the server answers
  const get = async (path: string): Promise<any> => (await fetch(`${root}/api/2.0/mlflow/${path}`)).json();
  const { experiment } = await get('experiments/get-by-name?experiment_name=check');
  const found = await fetch(`${root}/api/2.0/mlflow/runs/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ experiment_ids: [experiment.experiment_id] }),
  });
  const { runs } = (await found.json()) as {
    runs: { info: Record<string, string>; data: Record<string, { key: string; value: unknown }[]> }[];
  };
  assert.equal(runs.length, 1);
  const { info, data } = runs[0]!;
  assert.equal(info.status, 'FINISHED');
  assert.equal(info.run_name, 'first');
  assert.deepEqual(data.params, [{ key: 'a', value: '[1]' }]);
  const history = await get(`metrics/get-history?run_id=${info.run_id}&metric_key=train/reward`);
  const points = history.metrics.map(({ step, value }: { step: string | number; value: number }) => [
    Number(step),
    value,
  ]);
  assert.deepEqual(points, [
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 40],
  ]);
  const latest = new Map(data.metrics!.map(({ key, value }) => [key, value]));
  assert.equal(latest.get('many/m1499'), 1499);
  assert.equal(latest.get('odd/pass_1'), 1);
  const odd = ['nan', 'up', 'down'].map(key => String(latest.get(key)));
  process.stdout.write(
    `MLflow ${version}: one run, steps 1 to 4 once each; NaN, Infinity, -Infinity come back as ${odd.join(', ')}\n`,
  );
} finally {
  process.kill(-server.pid!);
  await once(server, 'exit');
  rmSync(dir, { recursive: true });
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port: free } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return free;
}

async function answering(child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 120; attempt++) {
    if (child.exitCode !== null) throw new Error(`${mlflow} exited with ${child.exitCode}`);
    try {
      if ((await fetch(`${root}/health`)).ok) return;
    } catch {
      await new Promise(resolve => setTimeout(resolve, 500));
    }
  }
  throw new Error('the server does not answer');
}
