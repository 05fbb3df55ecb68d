import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NO_SANDBOX } from '../../tests/support/sandbox.ts';
import { checkMemory, checkNode, checkRuns } from './checks/machine.ts';
import { checkRuntime } from './checks/runtime.ts';
import { checkSandbox } from './checks/sandbox.ts';
import { report } from './doctor.ts';

it('knows which Node is too old', () => {
  expect(checkNode('18.20.4')).toMatchObject({ state: 'failed', remedy: 'install Node 20.19 or newer' });
  expect(checkNode('20.18.1').state).toBe('failed');
  expect(checkNode('20.19.0').state).toBe('ok');
  expect(checkNode('24.1.0').state).toBe('ok');
});

it('warns of little memory', () => {
  expect(checkMemory(2 ** 29, 2 ** 32)).toMatchObject({ state: 'warning', found: '0.5 of 4.0 GiB free' });
  expect(checkMemory(2 ** 31, 2 ** 32).state).toBe('ok');
});

it('tries to write where runs go, and leaves nothing there', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'tokenloop-doctor-'));
  try {
    expect((await checkRuns(join(cwd, 'a/runs'))).found).toMatch(/is writable/);
    expect(existsSync(join(cwd, 'a'))).toBe(false);
    writeFileSync(join(cwd, 'file'), '');
    expect(await checkRuns(join(cwd, 'file/runs'))).toMatchObject({
      state: 'failed',
      remedy: expect.stringContaining('--run.dir'),
    });
  } finally {
    rmSync(cwd, { recursive: true });
  }
});

it('loads the runtime and computes with it', async () => {
  expect((await checkRuntime()).map(({ what, state }) => [what, state])).toEqual([
    ['onnxruntime-node', 'ok'],
    ['engine', 'ok'],
  ]);
});

it.skipIf(NO_SANDBOX)('runs a program of each language in the sandbox', async () => {
  const found = await checkSandbox();
  expect(found.map(({ what, state }) => [what, state])).toEqual([
    ['sandbox, python', 'ok'],
    ['sandbox, javascript', 'ok'],
  ]);
});

it('says what the sandbox lacks, as a warning', async () => {
  const [python] = await checkSandbox({ isolation: 'none', python: '/nowhere/python3' });
  expect(python).toMatchObject({ state: 'warning', found: expect.stringContaining('/nowhere/python3 does not run') });
});

it('reports what was found, the remedies and a verdict', () => {
  const fine = { what: 'node', state: 'ok', found: '20.20.2' } as const;
  expect(report([fine])).toMatch(/node\s+ok\s+20\.20\.2\n\nReady to train\.$/);
  const broken = { what: 'engine', state: 'failed', found: 'nothing', remedy: 'mend it' } as const;
  expect(report([fine, broken])).toMatch(/\n\nengine: mend it\n\nThis machine cannot train yet\.$/);
});
