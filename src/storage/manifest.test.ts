import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeDirectory } from './directories.ts';
import { findDamage, sizeOf, writeManifest } from './manifest.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'manifest-'));
  mkdirSync(join(directory, 'inner'));
  writeFileSync(join(directory, 'inner/a.bin'), Buffer.alloc(3_000_000, 7));
  writeFileSync(join(directory, 'b.json'), '{}');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it('a directory is whole once its manifest is there, and no more when any of its files changes', async () => {
  expect(sizeOf(directory)).toBe(3_000_002);
  expect(await findDamage(directory)).toMatch(/manifest\.json is missing, so it was never complete$/);
  await writeManifest(directory);
  expect(await findDamage(directory)).toBeUndefined();

  // One byte of three million.
  const content = Buffer.alloc(3_000_000, 7);
  content[1_234_567] = 8;
  writeFileSync(join(directory, 'inner/a.bin'), content);
  expect(await findDamage(directory)).toMatch(/inner\/a\.bin does not have the content that was written$/);
  writeFileSync(join(directory, 'inner/a.bin'), Buffer.alloc(3_000_000, 7));
  appendFileSync(join(directory, 'b.json'), ' ');
  expect(await findDamage(directory)).toMatch(/b\.json has 3 bytes instead of 2$/);
  rmSync(join(directory, 'b.json'));
  expect(await findDamage(directory)).toMatch(/b\.json is missing$/);
  writeFileSync(join(directory, 'manifest.json'), '{"format":1,');
  expect(await findDamage(directory)).toMatch(/manifest\.json is damaged$/);
});

it('makes the directories that lead to a path, and refuses what is a file', async () => {
  await makeDirectory(join(directory, 'x/y/z'));
  await makeDirectory(join(directory, 'x/y/z'));
  expect(sizeOf(join(directory, 'x'))).toBe(0);
  await expect(makeDirectory(join(directory, 'b.json'))).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(makeDirectory(join(directory, 'b.json/x'))).rejects.toMatchObject({ code: 'ENOTDIR' });
});

it.skipIf(process.platform !== 'linux')('refuses a file system that takes no directories', async () => {
  await expect(makeDirectory('/proc/tokenloop/run')).rejects.toThrow(
    '/proc/tokenloop: this file system takes no new directories; choose another path',
  );
});
