import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { COMMIT, hubServer } from '../../../tests/support/hub-server.ts';
import { modelDirectory } from './source.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'tokenloop-source-'));
  mkdirSync(join(base, 'org/small'), { recursive: true });
});
afterEach(() => rmSync(base, { recursive: true }));

describe('modelDirectory', () => {
  it('takes a directory, also one that looks like a name on the hub', async () => {
    const env = { HF_ENDPOINT: 'http://127.0.0.1:1' };
    expect(await modelDirectory('org/small', { base, env })).toBe(join(base, 'org/small'));
    expect(await modelDirectory(join(base, 'org'))).toBe(join(base, 'org'));
  });

  it.each([
    ['nowhere', /nowhere: no such directory; give one with a checkpoint in it, or the name of a model on the/],
    ['./org/large', /org\/large: no such directory/],
    ['a/b/c', /a\/b\/c: no such directory/],
    ['../secret', /secret: no such directory/],
    ['model.bin', /model\.bin: a file; give the directory of a checkpoint/],
  ])('refuses %s without asking the hub', async (source, message) => {
    writeFileSync(join(base, 'model.bin'), '');
    await expect(modelDirectory(source, { base, env: { HF_ENDPOINT: 'no address' } })).rejects.toThrow(message);
  });

  it('refuses a directory whose weights are a pickle, and a revision of a directory', async () => {
    await expect(modelDirectory('org/small', { base, revision: 'main' })).rejects.toThrow(
      'a directory has no revision main',
    );
    writeFileSync(join(base, 'org/small/training_args.bin'), '');
    await expect(modelDirectory('org/small', { base })).resolves.toBe(join(base, 'org/small'));
    writeFileSync(join(base, 'org/small/consolidated.00.pth'), '');
    await expect(modelDirectory('org/small', { base })).rejects.toThrow(/only consolidated\.00\.pth, a pickle/);
  });

  it('asks the hub for what is no directory, and refuses a configuration that is not known before its weights', async () => {
    const file = (content: string) => new TextEncoder().encode(content);
    const hub = await hubServer('org/other', {
      'config.json': file('{"architectures":["GPT2LMHeadModel"]}'),
      'tokenizer.json': file('{}'),
      'model.safetensors': new Uint8Array(20_000),
    });
    const options = { base, cacheDir: join(base, 'cache'), env: { HF_ENDPOINT: hub.endpoint } };
    try {
      await expect(modelDirectory('org/other', options)).rejects.toThrow(
        new RegExp(`${COMMIT}/config\\.json: architectures is \\["GPT2LMHeadModel"\\]`),
      );
      expect(hub.downloads('model.safetensors')).toBe(0);
      await expect(modelDirectory('org/another', options)).rejects.toThrow(
        /there is no model org\/another at .*\(.*org\/another is no directory either\)$/,
      );
    } finally {
      await hub.close();
    }
  });
});
