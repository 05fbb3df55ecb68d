import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HubServer, hubServer } from '../../../tests/support/hub-server.ts';
import { chooseFiles } from '../../data/choose.ts';
import { type DatasetOptions, fetchDataset } from './hub-dataset.ts';

const NAME = 'org/sums';
const bytes = (text: string) => new TextEncoder().encode(text);
const CONVERTED = {
  'main/train/0000.parquet': bytes('a'.repeat(20_000)),
  'main/test/0000.parquet': bytes('b'),
  'socratic/train/0000.parquet': bytes('c'),
};
const OWN = { 'README.md': bytes('# sums'), 'data/train.jsonl': bytes('{}'), 'data/test.jsonl': bytes('{"x":1}') };

let cache: string;
let server: HubServer;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'tokenloop-hub-'));
});
afterEach(async () => {
  await server.close();
  rmSync(cache, { recursive: true });
});

const options = (split: string, config?: string, env = {}): DatasetOptions => ({
  cacheDir: cache,
  env: { HF_ENDPOINT: server.endpoint, ...env },
  attempts: 2,
  delayMs: 1,
  choice: `${config ?? 'default'} ${split}`,
  choose: repository => chooseFiles(repository, { name: NAME, config, split: { name: split, given: true } }),
});

describe('fetchDataset', () => {
  it('takes a configuration and split of the conversion to Parquet, once', async () => {
    const revisions = ['main', 'refs/convert/parquet'];
    server = await hubServer(NAME, CONVERTED, undefined, { kind: 'datasets', revisions });
    const [file, ...others] = await fetchDataset(NAME, options('train', 'main'));
    expect(others).toEqual([]);
    expect(file!.label).toBe('main/train/0000.parquet');
    expect(readFileSync(file!.path, 'utf8')).toBe('a'.repeat(20_000));
    const downloads = server.downloads('main/train/0000.parquet');
    await fetchDataset(NAME, options('train', 'main'));
    expect(server.downloads('main/train/0000.parquet')).toBe(downloads);
    await expect(fetchDataset(NAME, options('train'))).rejects.toThrow(
      /configurations main, socratic; .*org\/sums:main/,
    );
    await expect(fetchDataset(NAME, options('dev', 'main'))).rejects.toThrow(/no file of the split "dev"/);
    await expect(fetchDataset(NAME, options('train', 'none'))).rejects.toThrow(/no configuration none; it has main/);
  });

  it('takes the files of the repository where there is no conversion, and serves them offline', async () => {
    server = await hubServer(NAME, OWN, undefined, { kind: 'datasets' });
    const online = await fetchDataset(NAME, options('test'));
    expect(online.map(({ label }) => label)).toEqual(['data/test.jsonl']);
    const before = server.requests.length;
    expect(await fetchDataset(NAME, options('test', undefined, { HF_HUB_OFFLINE: '1' }))).toEqual(online);
    expect(server.requests.length).toBe(before);
    await expect(fetchDataset(NAME, options('train', undefined, { HF_HUB_OFFLINE: '1' }))).rejects.toThrow(
      /org\/sums \(default train\) is not in .*HF_HUB_OFFLINE .*path of a copy/,
    );
  });

  it('takes the files that the card names, and serves them offline', async () => {
    const card = 'configs:\n- config_name: hard\n  data_files:\n  - split: train\n    path: "hard/*.jsonl"';
    const files = { ...OWN, 'hard/a.jsonl': bytes('{"n":1}'), 'hard/b.jsonl': bytes('{"n":2}') };
    files['README.md'] = bytes(`---\n${card}\n---\n# sums\n`);
    server = await hubServer(NAME, files, undefined, { kind: 'datasets' });
    const online = await fetchDataset(NAME, options('train'));
    expect(online.map(({ label }) => label)).toEqual(['hard/a.jsonl', 'hard/b.jsonl']);
    expect(readFileSync(online[1]!.path, 'utf8')).toBe('{"n":2}');
    expect(await fetchDataset(NAME, options('train', undefined, { HF_HUB_OFFLINE: '1' }))).toEqual(online);
    await expect(fetchDataset(NAME, options('test'))).rejects.toThrow(
      /org\/sums:hard has no split "test"; it has train/,
    );
  });

  it('takes the default of the card among the configurations of the conversion', async () => {
    const card = ['main', 'socratic']
      .map(name => `- config_name: ${name}\n  default: ${name === 'socratic'}`)
      .join('\n');
    const files = { ...CONVERTED, 'README.md': bytes(`---\nconfigs:\n${card}\n---\n`) };
    server = await hubServer(NAME, files, undefined, { kind: 'datasets', revisions: ['main', 'refs/convert/parquet'] });
    const found = await fetchDataset(NAME, options('train'));
    expect(found.map(({ label }) => label)).toEqual(['socratic/train/0000.parquet']);
  });

  it('names datasets and revisions that do not exist', async () => {
    server = await hubServer(NAME, OWN, undefined, { kind: 'datasets' });
    await expect(fetchDataset('org/none', options('train'))).rejects.toThrow(/there is no dataset org\/none at/);
    await expect(fetchDataset(NAME, { ...options('train'), revision: 'v7' })).rejects.toThrow(/no revision v7/);
  });
});
