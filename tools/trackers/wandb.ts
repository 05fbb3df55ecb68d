import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wandbOfflineTracker } from '../../src/tracking/wandb-offline.ts';
import { type WandbServer, wandbServer } from '../../tests/support/wandb-server.ts';

/**
 * W&B's own client against the server of our tests, first with a run of its own (does the server ask for what the client
 * sends?), then with `wandb sync` of an offline run that tokenloop wrote, killed and resumed:
 * `npx tsx tools/trackers/wandb.ts path/to/bin-of-python-environment`.
 */
const bin = process.argv[2] ?? '';
const KEY = '0123456789012345678901234567890123456789';
const PROGRAM = `
import wandb
run = wandb.init(project="p", group="g", name="n", config={"a.b": 1},
                 settings=wandb.Settings(disable_git=True, console="off", x_disable_stats=True, save_code=False))
run.log({"train/x": 1.5}, step=1)
run.log({"train/x": float("nan")}, step=2)
run.finish()
`;

const dir = mkdtempSync(join(tmpdir(), 'tokenloop-wandb-'));
try {
  const own = await wandbServer(KEY);
  await client(own, 'python', ['-c', PROGRAM]);
  assert.deepEqual(own.faults, []);
  const [run] = [...own.runs.values()];
  assert.deepEqual(stepsOf(run!.history), [
    [1, '1.5'],
    [2, 'NaN'],
  ]);
  assert.equal(run!.exitCode, 0);
  process.stdout.write("the server of the tests understands W&B's client\n");
  await own.close();

  const open = (resumeAfter?: number) =>
    wandbOfflineTracker({ dir, project: 'q', group: 'g', runName: 'first', config: { 'a.b': [1] }, resumeAfter });
  const wide = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`many/metric_${i}`, i / 7]));
  const killed = await open();
  for (const step of [1, 2, 3]) await killed.log({ step, metrics: { 'train/x': step, ...wide } });
  const resumed = await open(2);
  await resumed.log({ step: 3, metrics: { 'train/x': 30 } });
  await resumed.log({ step: 4, metrics: { 'train/x': Number.NaN } });
  await resumed.close();
  const synced = await wandbServer(KEY);
  const [offline] = readdirSync(join(dir, 'wandb')).filter(name => name.startsWith('offline-run'));
  await client(synced, 'wandb', ['sync', join(dir, 'wandb', offline!)]);
  assert.deepEqual(synced.faults, []);
  const sent = [...synced.runs.values()][0]!;
  assert.deepEqual(stepsOf(sent.history), [
    [1, '1'],
    [2, '2'],
    [3, '30'],
    [4, 'NaN'],
  ]);
  assert.match(sent.history[1]!, /"many\/metric_2999":428\.4/);
  assert.equal(sent.variables.project, 'q');
  assert.equal(sent.variables.groupName, 'g');
  assert.deepEqual(sent.config['a.b'], { value: [1] });
  assert.equal(sent.exitCode, 0);
  await synced.close();
  process.stdout.write('wandb sync sends an offline run of tokenloop: steps 1 to 4 once each\n');
} finally {
  rmSync(dir, { recursive: true });
}

function stepsOf(history: readonly string[]): [number, string][] {
  return history.map(line => [Number(/"_step":(\d+)/.exec(line)?.[1]), /"train\/x":([^,}]+)/.exec(line)?.[1] ?? '']);
}

async function client({ url }: WandbServer, program: string, args: readonly string[]): Promise<void> {
  const env = { ...process.env, WANDB_BASE_URL: url, WANDB_API_KEY: KEY, WANDB_SILENT: 'true' };
  const child = spawn(join(bin, program), args, { cwd: dir, env, stdio: ['ignore', 'inherit', 'inherit'] });
  const code = await new Promise(resolve => child.on('close', resolve));
  assert.equal(code, 0, `${program} exited with ${code}`);
}
