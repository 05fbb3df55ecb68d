import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { acquireLock, InUseError } from './lock.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'lock-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));
const path = () => join(directory, 'lock.json');
const never = (message: string) => expect.unreachable(message);
const leave = (owner: object) => writeFileSync(path(), JSON.stringify({ since: 'yesterday', ...owner }));

it('lets one in at a time, says who it is, and leaves nothing behind', async () => {
  const lock = await acquireLock(join(directory, 'new/run'), never);
  await expect(acquireLock(join(directory, 'new/run'), never)).rejects.toThrow(
    new RegExp(`new/run is in use by process ${process.pid} on ${hostname()} since .*remove .*lock\\.json`),
  );
  await lock.release();
  expect(readdirSync(join(directory, 'new/run'))).toEqual([]);
  await (await acquireLock(join(directory, 'new/run'), never)).release();
});

it('takes over from a process that has ended', async () => {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  leave({ pid: child.pid, host: hostname() });
  const notices: string[] = [];
  const lock = await acquireLock(directory, message => notices.push(message));
  expect(notices).toEqual([expect.stringMatching(`over from process ${child.pid} on`)]);
  expect(JSON.parse(readFileSync(path(), 'utf8'))).toMatchObject({ pid: process.pid });
  await lock.release();
  expect(readdirSync(directory)).toEqual([]);
});

it.skipIf(process.platform !== 'linux')('is not deceived by a process id that is used again', async () => {
  for (const other of [{ start: '1' }, { boot: 'before the machine was started again' }]) {
    leave({ pid: process.pid, host: hostname(), ...other });
    const notices: string[] = [];
    const lock = await acquireLock(directory, message => notices.push(message));
    expect(notices).toHaveLength(1);
    await lock.release();
  }
});

it('takes a process of another host for alive, and a lock that says nothing for one', async () => {
  leave({ pid: 1, host: `not ${hostname()}` });
  await expect(acquireLock(directory, never)).rejects.toThrow(InUseError);
  writeFileSync(path(), '{');
  await expect(acquireLock(directory, never)).rejects.toThrow(/does not say who uses the directory; remove it/);
});

it('of many that find the lock of a dead process one gets in', async () => {
  leave({ pid: 2 ** 22 + 1, host: hostname() });
  const attempts = await Promise.allSettled(Array.from({ length: 2 }, () => acquireLock(directory, () => undefined)));
  expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

it('a lock that was taken away is not released again', async () => {
  const lock = await acquireLock(directory, never);
  leave({ pid: 1, host: 'elsewhere' });
  await lock.release();
  expect(readdirSync(directory)).toEqual(['lock.json']);
});
