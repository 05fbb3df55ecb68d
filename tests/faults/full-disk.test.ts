import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';

const dir = mkdtempSync(join(tmpdir(), 'tokenloop-full-'));
afterAll(() => rmSync(dir, { recursive: true }));
const path = (relative: string) => fileURLToPath(new URL(`../../${relative}`, import.meta.url));

/** Writes lines of 10 000 characters until the limit of the process for the size of a file is reached, then one more. */
const PROGRAM = `
  import { jsonlTracker } from ${JSON.stringify(path('src/tracking/jsonl.ts'))};
  import { fanOut } from ${JSON.stringify(path('src/tracking/fan-out.ts'))};
  const reported = [];
  const trackers = fanOut([await jsonlTracker({ dir: process.cwd() })], { report: message => reported.push(message) });
  for (let step = 1; step <= 8; step++) await trackers.log({ step, metrics: { ['x'.repeat(10_000)]: step } });
  await trackers.log({ step: 9, metrics: { short: 1 } });
  await trackers.close();
  process.stdout.write(JSON.stringify([reported, trackers.failures.get('jsonl')]));
`;

/** A limit on file sizes stands for the disk: a write beyond it is cut short and fails, as on a disk that is full. */
it.skipIf(process.platform === 'win32')(
  'a line that does not fit is not left half-written, and the run goes on',
  () => {
    const node = `exec "${process.execPath}" --import "${path('node_modules/tsx/dist/loader.mjs')}" --input-type=module`;
    const { stdout, stderr } = spawnSync('bash', ['-c', `ulimit -f 64; ${node}`], {
      cwd: dir,
      input: PROGRAM,
      encoding: 'utf8',
      env: { ...process.env, TSX_DISABLE_CACHE: '1' },
    });
    expect(stderr).toBe('');
    const lost = /^tracker jsonl: EFBIG.*; what was logged at step 7 is lost there; the run goes on$/;
    expect(JSON.parse(stdout)).toEqual([[expect.stringMatching(lost)], 2]);
    const lines = readFileSync(join(dir, 'metrics.jsonl'), 'utf8').split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.map(line => JSON.parse(line).step)).toEqual([1, 2, 3, 4, 5, 6, 9]);
  },
);
