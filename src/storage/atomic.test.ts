import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { latestDirectory, writeDirectoryAtomic, writeFileAtomic } from './atomic.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-atomic-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const fill = (text: string) => (temporary: string) => writeFile(join(temporary, 'a.txt'), text);
const read = (directory: string) => readFileSync(join(directory, 'a.txt'), 'utf8');

describe('writeFileAtomic', () => {
  it('makes missing directories, replaces, and leaves nothing beside the file', async () => {
    const path = join(root, 'deep', 'er', 'state.json');
    await writeFileAtomic(path, 'one');
    await writeFileAtomic(path, Uint8Array.of(0x32));
    expect(readFileSync(path, 'utf8')).toBe('2');
    expect(readdirSync(join(root, 'deep', 'er'))).toEqual(['state.json']);
  });

  it('explains what is in the way', async () => {
    writeFileSync(join(root, 'file'), '');
    const inside = join(root, 'file', 'state.json');
    await expect(writeFileAtomic(inside, '')).rejects.toThrow(
      `could not write ${inside}: a part of the path is a file`,
    );
    mkdirSync(join(root, 'directory'));
    await expect(writeFileAtomic(join(root, 'directory'), '')).rejects.toThrow('there is a directory of that name');
    expect(readdirSync(root).sort()).toEqual(['directory', 'file']);
  });
});

describe('writeDirectoryAtomic', () => {
  it('makes and replaces a directory whole', async () => {
    const target = join(root, 'model');
    await writeDirectoryAtomic(target, fill('one'));
    await writeDirectoryAtomic(`${target}/`, async temporary => {
      expect(read(target)).toBe('one');
      await writeFile(join(temporary, 'b.txt'), 'two');
    });
    expect(readdirSync(target)).toEqual(['b.txt']);
    expect(readdirSync(root)).toEqual(['model']);
  });

  it('keeps what was there when the new one fails, and throws the failure', async () => {
    const target = join(root, 'model');
    await writeDirectoryAtomic(target, fill('one'));
    const failure = new Error('NaN in the weights');
    const failing = writeDirectoryAtomic(target, async temporary => {
      await fill('two')(temporary);
      throw failure;
    });
    await expect(failing).rejects.toBe(failure);
    expect(read(target)).toBe('one');
    expect(readdirSync(root)).toEqual(['model']);
  });

  it.runIf(existsSync('/dev/full'))('names the path and the remedy when the disk is full', async () => {
    const target = join(root, 'model');
    const failing = writeDirectoryAtomic(target, async temporary => {
      symlinkSync('/dev/full', join(temporary, 'a.txt'));
      await fill('one')(temporary);
    });
    await expect(failing).rejects.toThrow(`could not write ${target}: the disk is full: free space or`);
    expect(readdirSync(root)).toEqual([]);
  });

  it('clears what a killed process left of an unfinished one', async () => {
    mkdirSync(join(root, 'model.tmp'));
    writeFileSync(join(root, 'model.tmp', 'half.txt'), '');
    const target = join(root, 'model');
    await writeDirectoryAtomic(target, fill('one'));
    expect(readdirSync(target)).toEqual(['a.txt']);
    expect(readdirSync(root)).toEqual(['model']);
  });

  it('finds and restores what a process killed between the two renames left', async () => {
    const target = join(root, 'model');
    mkdirSync(join(root, 'model.old'));
    writeFileSync(join(root, 'model.old', 'a.txt'), 'old');
    expect(read(latestDirectory(target))).toBe('old');
    const failing = writeDirectoryAtomic(target, () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(read(target)).toBe('old');
    await writeDirectoryAtomic(target, fill('new'));
    expect(read(latestDirectory(target))).toBe('new');
    expect(readdirSync(root)).toEqual(['model']);
  });

  it('refuses a second writer of the same directory', async () => {
    const target = join(root, 'model');
    const first = writeDirectoryAtomic(target, fill('one'));
    await expect(writeDirectoryAtomic(target, fill('two'))).rejects.toThrow('is being written already');
    await first;
    expect(read(target)).toBe('one');
  });
});
