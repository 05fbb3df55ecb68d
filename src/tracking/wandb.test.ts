import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { until } from '../../tests/support/until.ts';
import { type WandbServer, wandbServer } from '../../tests/support/wandb-server.ts';
import { type WandbOptions, wandbTracker } from './wandb.ts';

const KEY = 'canary-0123456789012345678901234567890123';
let dir: string;
let server: WandbServer;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tokenloop-wandb-'));
  server = await wandbServer(KEY);
});
afterEach(async () => {
  vi.useRealTimers();
  rmSync(dir, { recursive: true });
  await server.close();
});
const open = (options: Partial<WandbOptions> = {}) =>
  wandbTracker({ dir, apiKey: KEY, baseUrl: server.url, project: 'p', ...options });
const only = () => [...server.runs.values()][0]!;
const history = () => only().history.map(line => line.replace(/,"_timestamp":[\d.]+/, ''));

it('creates the run and streams its history, its summary and its end', async () => {
  const said: string[] = [];
  const tracker = await open({
    entity: 'team',
    group: 'g',
    runName: 'first',
    config: { 'a.b': [1] },
    announce: text => said.push(text),
  });
  await tracker.log({ step: 0, metrics: { 'eval/pass1': 0.5 } });
  await tracker.log({ step: 1, metrics: { 'train/reward': Number.NaN, 'train/kl': -1e-7 } });
  await tracker.close();
  expect(server.faults).toEqual([]);
  const [[id, run] = []] = [...server.runs];
  expect(run!.variables).toMatchObject({ project: 'p', entity: 'team', groupName: 'g', displayName: 'first' });
  expect(run!.config).toEqual({ 'a.b': { value: [1] } });
  expect(history()).toEqual(['{"eval/pass1":0.5,"_step":0}', '{"train/reward":NaN,"train/kl":-1e-7,"_step":1}']);
  expect(run!.summary).toMatch(
    /^{"eval\/pass1":0.5,"_step":1,"_timestamp":[\d.]+,"train\/reward":NaN,"train\/kl":-1e-7}$/,
  );
  expect(run!.exitCode).toBe(0);
  expect(said).toEqual([`wandb: ${server.url}/team/p/runs/${id}`]);
});

it('resumes its run behind the last step that the server has', async () => {
  const killed = await open();
  for (const step of [1, 2, 3]) await killed.log({ step, metrics: { a: step } });
  await killed.close('interrupted');
  expect(only().exitCode).toBe(255);
  const resumed = await open({ resumeAfter: 1 });
  for (const step of [2, 3, 4]) await resumed.log({ step, metrics: { a: 10 * step } });
  await resumed.close();
  expect(server.runs.size).toBe(1);
  expect(history()).toEqual([1, 2, 3].map(step => `{"a":${step},"_step":${step}}`).concat('{"a":40,"_step":4}'));
  expect([server.faults, only().exitCode]).toEqual([[], 0]);
});

it('survives a server that fails for a while: no line is lost, none comes twice', async () => {
  server.fail(503);
  const tracker = await open();
  await tracker.log({ step: 1, metrics: { a: 1 } });
  await until(() => server.requests.length === 1);
  await tracker.log({ step: 2, metrics: { a: 2 } });
  await tracker.close();
  expect(history()).toEqual(['{"a":1,"_step":1}', '{"a":2,"_step":2}']);
  expect(server.faults).toEqual([]);
});

it('shows the key nowhere: not in an error, though the server repeats it, and not in a file', async () => {
  server.fail(401);
  const tracker = await open({ config: { x: 1 } });
  await tracker.log({ step: 1, metrics: { a: 1 } });
  const error = await Promise.resolve(tracker.close()).then(
    () => undefined,
    thrown => thrown,
  );
  expect(error).toMatchObject({ message: expect.stringMatching(/401 Unauthorized/), lost: expect.any(String) });
  const shown = `${error.stack}${JSON.stringify(error)}${readFileSync(join(dir, 'wandb.json'), 'utf8')}`;
  expect(shown).toContain('***');
  expect(shown).not.toContain('canary');
  expect(shown).not.toContain(Buffer.from(`api:${KEY}`).toString('base64'));
});

it('gives a sign of life while a step takes long', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const tracker = await open();
  await tracker.log({ step: 1, metrics: { a: 1 } });
  await until(() => server.requests.length === 2);
  await new Promise(resolve => setImmediate(resolve));
  vi.advanceTimersByTime(30_000);
  await until(() => server.requests.length === 3);
  await tracker.close();
  expect([only().heartbeats, server.faults]).toEqual([1, []]);
});
