import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { type HubServer, hubServer, refuse } from '../../tests/support/hub-server.ts';
import { loadEvaluationTasks, loadTrainingTasks } from './datasets.ts';

const cwd = mkdtempSync(join(tmpdir(), 'datasets-'));
afterAll(() => rmSync(cwd, { recursive: true }));
afterEach(() => void vi.unstubAllEnvs());
const row = (input: string, more: object = {}) => `${JSON.stringify({ input, ...more })}\n`;
writeFileSync(join(cwd, 'a.jsonl'), row('1', { id: 'x' }) + row('2', { datasource: 'own' }));
writeFileSync(join(cwd, 'b.jsonl'), row('3', { id: 'x' }) + row('4'));

const values = {
  'data.input_key': 'input',
  'data.label_key': undefined,
  'data.input_template': undefined,
  'data.apply_chat_template': false,
  'data.on_malformed': 'error',
  'data.max_malformed': 100,
  'data.image_key': 'images',
  'data.max_images_per_prompt': 0,
} as const;
const surroundings = { cwd, stderr: { write: () => undefined } };
const load = async (datasets: string | string[], limit?: number) =>
  (await loadEvaluationTasks(datasets, values, surroundings, { limit })).map(({ id, source }) => [id, source]);

it('tasks of several files bear their names, and their ids do not collide', async () => {
  expect(await load('a.jsonl')).toEqual([
    ['x', 'a'],
    ['a:2', 'own'],
  ]);
  expect(await load(['first=a.jsonl', 'second=b.jsonl'])).toEqual([
    ['first:x', 'first'],
    ['first:a:2', 'first'],
    ['second:x', 'second'],
    ['second:b:2', 'second'],
  ]);
  expect(await load(['a.jsonl', 'second=b.jsonl'], 1)).toEqual([
    ['x', 'a'],
    ['second:x', 'second'],
  ]);
});

it('renames columns, for what has no option as well', async () => {
  const png = Buffer.from('89504e470d0a1a0a00000000', 'hex');
  writeFileSync(join(cwd, 'a.png'), png);
  const rows = [7, 8].map(nr => ({ q: { text: `${nr}+1` }, nr, kind: 'sum', picture: 'a.png', solved: [`${nr + 1}`] }));
  writeFileSync(join(cwd, 'foreign.jsonl'), rows.map(one => JSON.stringify(one)).join('\n'));
  const mapping = { input: 'q.text', id: 'nr', datasource: 'kind', images: 'picture', label: 'solved.0' };
  const given = {
    ...values,
    'data.label_key': 'label',
    'data.max_images_per_prompt': 1,
    'data.column_mapping': mapping,
  };
  const tasks = await loadTrainingTasks({ datasets: 'foreign.jsonl' }, given, surroundings);
  expect(
    [...tasks].map(({ id, source, prompt, label, images }) => [id, source, prompt, label, images?.length]),
  ).toEqual([
    ['7', 'sum', '7+1', '8', 1],
    ['8', 'sum', '8+1', '9', 1],
  ]);
  const unknown = { ...given, 'data.column_mapping': { ...mapping, id: 'number' } };
  await expect(loadEvaluationTasks('foreign.jsonl', unknown, surroundings)).rejects.toThrow(
    /foreign\.jsonl:1: no column "number" \(data\.column_mapping makes it "id"\); this row has q, nr, kind, picture, solved/,
  );
});

describe('a name without organisation', () => {
  const servers: HubServer[] = [];
  afterAll(() => Promise.all(servers.map(server => server.close())));

  it('is looked up on the hub, which knows where it went', async () => {
    const home = join(cwd, 'home');
    const rows = { 'README.md': Buffer.from('# sums'), 'train.jsonl': Buffer.from(row('1')) };
    const server = await hubServer(
      'org/sums',
      rows,
      ({ url = '' }, response) => {
        if (!/\/datasets\/sums\//.test(url)) return false;
        response.writeHead(307, { location: url.replace('/sums/', '/org/sums/') }).end();
        return true;
      },
      { kind: 'datasets' },
    );
    servers.push(server);
    vi.stubEnv('HF_HUB_CACHE', home);
    const at = { ...surroundings, env: { HF_ENDPOINT: server.endpoint } };
    const [task] = await loadTrainingTasks({ datasets: 'sums' }, values, at);
    expect([task!.id, task!.source]).toEqual(['train.jsonl:1', 'sums']);
    const offline = { ...at, env: { ...at.env, HF_HUB_OFFLINE: '1' } };
    expect((await loadTrainingTasks({ datasets: 'sums' }, values, offline)).length).toBe(1);
    await expect(loadTrainingTasks({ datasets: 'products' }, values, offline)).rejects.toThrow(
      /the dataset products \(default train\) is not in .*HF_HUB_OFFLINE .*\(.*products is no file or directory either\)/,
    );
  });

  it('is a path where there is one', async () => {
    writeFileSync(join(cwd, 'squad'), row('1'));
    const [task] = await loadTrainingTasks({ datasets: 'squad' }, values, surroundings);
    expect(task!.id).toBe('squad:1');
  });

  it('that the hub does not know, or that it cannot be asked for, is called missing in both places', async () => {
    const server = await hubServer('org/sums', {}, (_request, response) => {
      refuse(response, 404, 'RepoNotFound');
      return true;
    });
    const missing = (env: Record<string, string>) =>
      loadTrainingTasks({ datasets: 'tasks' }, values, { ...surroundings, env });
    await expect(missing({ HF_ENDPOINT: server.endpoint })).rejects.toThrow(
      /there is no dataset tasks at .* \(.*tasks is no file or directory either\)/,
    );
    await server.close();
    await expect(missing({ HF_ENDPOINT: server.endpoint })).rejects.toThrow(
      /cannot be reached for tasks .*tasks is no file or directory either/,
    );
  });
});
