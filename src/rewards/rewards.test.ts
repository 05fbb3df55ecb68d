import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { perSample, type RewardInput } from './contracts.ts';
import { exactMatch } from './exact-match.ts';
import { loadRewardFile } from './file/load.ts';

const input = (text: string, label: string): RewardInput => ({
  task: { id: 't', prompt: 'p', label, metadata: {} },
  prompt: 'p',
  text,
  query: `p${text}`,
  label,
  episode: { id: 'e', group: 'g', sample: 0, segments: [], steps: [] },
  signal: new AbortController().signal,
});

describe('exactMatch', () => {
  it('compares trimmed texts', async () => {
    const batch = [input(' 4\n', '4'), input('4.0', '4'), input('', '4'), input('x', ' x')];
    expect(await exactMatch()(batch)).toEqual([1, 0, 0, 1]);
  });

  it('takes the answer out of the text first', async () => {
    const reward = exactMatch({ extract: text => /#### (.*)/.exec(text)?.[1] });
    expect(await reward([input('so #### 4', '4'), input('4', '4'), input('4', '')])).toEqual([1, 0, 0]);
  });
});

it('perSample keeps the order, whatever the order in which scores arrive', async () => {
  const waiting: (() => void)[] = [];
  const reward = perSample(({ text }) => new Promise<number>(resolve => waiting.push(() => resolve(Number(text)))));
  const scores = reward(['1', '2', '3'].map(text => input(text, '')));
  for (const release of waiting.reverse()) release();
  expect(await scores).toEqual([1, 2, 3]);
});

describe('loadRewardFile', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'rewards-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const file = (name: string, content: string) => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  };

  it.each([['default.mjs', 'export default async batch => batch.map(({ text }) => text.length);']])(
    'takes the function of %s',
    async (name, content) => {
      const reward = await loadRewardFile(file(name, content));
      expect(await reward([input('abc', ''), input('', '')])).toEqual([3, 0]);
    },
  );

  it.each([
    [
      'nothing.mjs',
      'export const reward = () => 1;',
      /nothing\.mjs: exports nothing as reward_func or default \(it exports reward \(line 1\)\); export a/,
    ],
    ['number.mjs', 'export default 3;', /number\.mjs: exports 3 as reward_func or default/],
    ['throws.mjs', 'throw new Error("no key");', /throws\.mjs:1:7: no key$/],
    ['broken.mjs', 'export default batch =>', /broken\.mjs:1:\d+: /],
    ['import.mjs', 'import "./absent.mjs";', /import\.mjs:1:1: .*absent\.mjs/],
  ])('says what is wrong with %s', async (name, content, message) => {
    await expect(loadRewardFile(file(name, content))).rejects.toThrow(message);
  });

  it('names a file that is not there', async () => {
    await expect(loadRewardFile('absent/reward.mjs')).rejects.toThrow(
      /absent\/reward\.mjs: no such file \(looked for \//,
    );
  });
});
