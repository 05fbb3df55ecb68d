import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type MlflowServer, mlflowServer } from '../../tests/support/mlflow-server.ts';
import { until } from '../../tests/support/until.ts';
import { type MlflowOptions, mlflowTracker } from './mlflow.ts';

const TOKEN = 'canary-token';
let dir: string;
let server: MlflowServer;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tokenloop-mlflow-'));
  server = await mlflowServer(`Bearer ${TOKEN}`);
});
afterEach(async () => {
  rmSync(dir, { recursive: true });
  await server.close();
});
const open = (options: Partial<MlflowOptions> = {}) =>
  mlflowTracker({ dir, trackingUri: server.url, credentials: { token: TOKEN }, experiment: 'e', ...options });
const only = () => [...server.runs.values()][0]!;
const values = () => only().metrics.map(({ key, step, value }) => [key, step, value]);

it('makes experiment and run, logs parameters, metrics and the end', async () => {
  const config = { 'a.b': [1], name: 'x', ...Object.fromEntries(Array.from({ length: 120 }, (_, i) => [`p${i}`, i])) };
  const said: string[] = [];
  const tracker = await open({ runName: 'first', config, announce: text => said.push(text) });
  await tracker.log({ step: 0, metrics: { 'eval/pass@1': 0.5 } });
  await tracker.log({ step: 1, metrics: { 'train/reward': Number.NaN, 'train/kl': -1e-7 } });
  await tracker.close();
  // The answer to the question for an experiment that is not there is no fault of ours.
  expect(server.faults).toEqual([expect.stringContaining('RESOURCE_DOES_NOT_EXIST')]);
  expect(only()).toMatchObject({ name: 'first', status: 'FINISHED', experiment: '1' });
  expect([only().params.get('a.b'), only().params.get('name'), only().params.size]).toEqual(['[1]', 'x', 122]);
  expect(values()).toEqual([
    ['eval/pass_1', 0, 0.5],
    ['train/reward', 1, 'NaN'],
    ['train/kl', 1, -1e-7],
  ]);
  expect(said).toEqual([`mlflow: ${server.url}/#/experiments/1/runs/run0`]);
});

it('splits what is too much for one request', async () => {
  const tracker = await open();
  await tracker.log({ step: 1, metrics: Object.fromEntries(Array.from({ length: 2500 }, (_, i) => [`m${i}`, i])) });
  await tracker.close();
  expect(only().metrics).toHaveLength(2500);
});

it('uses the experiment that is there, and resumes its run without repeating a step', async () => {
  const killed = await open();
  for (const step of [1, 2, 3]) await killed.log({ step, metrics: { a: step } });
  await killed.close('interrupted');
  expect(only().status).toBe('KILLED');
  const resumed = await open({ resumeAfter: 1 });
  for (const step of [2, 3, 4]) await resumed.log({ step, metrics: { a: 10 * step } });
  await resumed.close('failed');
  expect(server.runs.size).toBe(1);
  expect(values()).toEqual([
    ['a', 1, 1],
    ['a', 2, 2],
    ['a', 3, 3],
    ['a', 4, 40],
  ]);
  expect(only().status).toBe('FAILED');
  await (await open()).close();
  expect([...server.runs.values()].map(({ experiment }) => experiment)).toEqual(['1', '1']);
});

it('makes one run, also when the server fails in the middle of it', async () => {
  const tracker = await open({ config: { a: 1 } });
  server.fail(200, 200, 200, 503);
  await tracker.log({ step: 1, metrics: { a: 1 } });
  await until(() => server.requests.length >= 4);
  await tracker.close();
  expect(server.runs.size).toBe(1);
  expect([values(), only().params.get('a')]).toEqual([[['a', 1, 1]], '1']);
});

it.each([
  ['token', { token: TOKEN }],
  ['password', { user: 'me', password: 'canary-password' }],
])('shows the %s nowhere, though the server repeats it', async (_, credentials) => {
  const tracker = await open({ credentials });
  server.fail(403);
  await tracker.log({ step: 1, metrics: { a: 1 } });
  const error = await Promise.resolve(tracker.close()).catch((thrown: Error) => thrown);
  expect((error as Error).message).toMatch(/403 Forbidden.*\*\*\*/);
  expect(`${(error as Error).stack}${JSON.stringify(error)}`).not.toMatch(/canary|Y2FuYXJ5|bWU6Y2Fu/);
});

it('notes nothing but the run', async () => {
  const tracker = await open();
  await tracker.log({ step: 1, metrics: {} });
  await tracker.close();
  expect(readFileSync(join(dir, 'mlflow.json'), 'utf8')).toBe('{"runId":"run0"}\n');
});
