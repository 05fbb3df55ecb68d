import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root, start, tokenloop } from '../support/process.ts';
import { EPISODES_PER_STEP, smallJob } from '../support/small-job.ts';
import { lastingMetrics, readRecords } from '../support/workplace.ts';

/** What a machine does to a run: its thread dies, its disk fills, its clock jumps, it is asked to end. */

let cwd: string;
const argv = (run: string, ...more: string[]) => ['rl', '--config', 'rl.yaml', '--run.dir', run, ...more];
const model = (run: string) => readFileSync(join(cwd, run, 'model/model.safetensors'));

beforeAll(async () => {
  cwd = await smallJob();
  expect(await tokenloop(argv('whole'), { cwd })).toMatchObject({ code: 0, err: '' });
});

async function expectToContinue(run: string): Promise<void> {
  expect(await tokenloop(['rl', '--resume', run], { cwd })).toMatchObject({ code: 0 });
  expect(lastingMetrics(join(cwd, run))).toEqual(lastingMetrics(join(cwd, 'whole')));
  expect(model(run).equals(model('whole'))).toBe(true);
}

/** Ids of processes that were started with a variable of this value. */
function processesWith(mark: string): string[] {
  return readdirSync('/proc').filter(name => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(join('/proc', name, 'environ'), 'utf8').includes(mark);
    } catch {
      // It has ended in the meantime.
      return false;
    }
  });
}

describe('SIGTERM', () => {
  it('finishes the step, writes a checkpoint and exits with 130; no process is left', async () => {
    const mark = `TOKENLOOP_MARK=${cwd}`;
    const env = { PAUSE_AT: String(2 * EPISODES_PER_STEP + 1), UNTIL: 'SIGTERM', TOKENLOOP_MARK: cwd };
    const { child, ended, said } = start(argv('asked'), { cwd, env });
    await said('stdout', 'paused');
    if (process.platform === 'linux') expect(processesWith(mark)).toContain(String(child.pid));
    child.kill('SIGTERM');
    const { code, out } = await ended;
    expect({ code, out }).toEqual({ code: 130, out: expect.stringContaining('--resume asked') });
    if (process.platform === 'linux') expect(processesWith(mark)).toEqual([]);
    await expectToContinue('asked');
  });
});

describe('the engine thread', () => {
  it('that dies ends the run with an error that says so, and the run continues from its checkpoint', async () => {
    const NODE_OPTIONS = `--require ${join(root, 'tests/support/fatal-moment.cjs')}`;
    const into = join(cwd, 'events');
    await tokenloop(argv('counted'), { cwd, env: { NODE_OPTIONS, EVENTS_INTO: into } });
    // In the middle of the second checkpoint, which the thread writes.
    const at = Math.ceil(readFileSync(`${into}.worker`).length / 4);
    const env = { NODE_OPTIONS, FATAL_AT: `worker:${at}`, FATAL_HOW: 'thread' };
    const { code, err } = await tokenloop(argv('thread'), { cwd, env });
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/^tokenloop: the engine thread ended with code 7\n$/),
    });
    expect(readRecords(join(cwd, 'thread/metrics.jsonl')).map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    await expectToContinue('thread');
  });
});

/** A disk of its own, where the system lets us make one. */
const disk = (size: string, directory: string, remount = false) =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}${remount ? ',remount' : ''}`, 'tmpfs', directory]).status ===
  0;
const mounted: string[] = [];
afterAll(() => {
  for (const directory of mounted) spawnSync('umount', [directory]);
});

it('a disk that is full ends the run with the remedy; with room again it continues', async ({ skip }) => {
  const directory = join(cwd, 'small disk');
  mkdirSync(directory);
  if (process.platform !== 'linux' || !disk('256k', directory)) skip('needs the right to mount a tmpfs');
  mounted.push(directory);
  const run = 'small disk/run';
  const { code, err } = await tokenloop(argv(run, '--ckpt.max_num', '9', '--ckpt.save_steps', '1'), { cwd });
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(/could not write .*step-0000000\d: the disk is full: free space .*ENOSPC/),
  });
  expect(disk('4m', directory, true)).toBe(true);
  await expectToContinue(run);
});

it('a clock that jumps changes nothing but the times for people', async () => {
  const jump = join(cwd, 'jumping-clock.mjs');
  writeFileSync(
    jump,
    `const Real = Date;
    let calls = 0;
    const now = () => Real.now() + (calls++ % 2 === 0 ? -1 : 1) * calls * 86_400_000;
    globalThis.Date = class extends Real {
      constructor(...args) { if (args.length === 0) super(now()); else super(...args); }
      static now() { return now(); }
    };`,
  );
  const imports = [pathToFileURL(jump).href];
  expect(await tokenloop(argv('jumping'), { cwd, imports })).toMatchObject({ code: 0, err: '' });
  expect(lastingMetrics(join(cwd, 'jumping'))).toEqual(lastingMetrics(join(cwd, 'whole')));
  for (const record of readRecords(join(cwd, 'jumping/metrics.jsonl'))) {
    for (const [name, value] of Object.entries(record)) {
      if (name.startsWith('timing/'))
        expect(value).toSatisfy(seconds => (seconds as number) >= 0 && (seconds as number) < 1e6);
    }
  }
  expect(model('jumping').equals(model('whole'))).toBe(true);
});

it('a run directory in use is refused, with its owner', async () => {
  const env = { PAUSE_AT: '1', UNTIL: 'never' };
  const { child, ended, said } = start(argv('used'), { cwd, env });
  await said('stdout', 'paused');
  const { code, err } = await tokenloop(argv('used', '--ckpt.load_enable'), { cwd });
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringMatching(new RegExp(`used is in use by process ${child.pid} on .* since .*; wait for it`)),
  });
  child.kill('SIGKILL');
  await ended;
});

it.skipIf(process.platform !== 'linux')('a file system that takes no directories is refused', async () => {
  const { code, err } = await tokenloop(argv('/proc/run'), { cwd });
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(/\/proc\/run: this file system takes no new dir/),
  });
});

it('a checkpoint of another configuration is refused, with the option; what may change is told', async () => {
  expect(await tokenloop(argv('other', '--train.max_steps', '2'), { cwd })).toMatchObject({ code: 0 });
  const refused = await tokenloop(['rl', '--resume', 'other', '--train.seed', '7', '--train.enable_ema'], { cwd });
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.err).toMatch(
    /train\.seed is 7, and the checkpoint was made with 42: .*\n.*train\.enable_ema is true, and/,
  );
  const told = await tokenloop(['rl', '--resume', 'other', '--actor.adam.lr', '0.005', '--train.max_steps', '3'], {
    cwd,
  });
  expect(told).toMatchObject({ code: 0 });
  expect(told.err).toMatch(/actor\.adam\.lr was 0\.01 when the checkpoint was written and is 0\.005 from here on\n/);
});
