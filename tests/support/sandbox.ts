import { spawnSync } from 'node:child_process';
import { afterAll } from 'vitest';
import type { Sandbox } from '../../src/sandbox/contracts.ts';
import { openSandbox } from '../../src/sandbox/sandbox.ts';

/** Why programs cannot be isolated on this machine; undefined where they can. Printed, so that a skip is seen. */
export const NO_SANDBOX: string | undefined = reason();

function reason(): string | undefined {
  const asRoot = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const args = ['--unshare-all', '--unshare-user', '--disable-userns', '--ro-bind', '/', '/', 'true'];
  const { error, status, stderr } = spawnSync('bwrap', args, { ...asRoot, cwd: '/', encoding: 'utf8' });
  if (error === undefined && status === 0) return undefined;
  const why = `no sandbox here: ${error?.message ?? stderr.trim()}; install bubblewrap 0.8 or newer`;
  process.stderr.write(`tests of programs in a sandbox are skipped: ${why}\n`);
  return why;
}

const open: Sandbox[] = [];
afterAll(() => Promise.all(open.map(sandbox => sandbox.close())));

/** A sandbox that is closed after the tests of the file. */
export function opened(options: Parameters<typeof openSandbox>[0]): Sandbox {
  const sandbox = openSandbox(options);
  open.push(sandbox);
  return sandbox;
}
