import { mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readRecord } from './wandb/records.ts';
import { appendRecord, LOG_HEADER, logRecords } from './wandb/transaction-log.ts';
import { wandbOfflineTracker } from './wandb-offline.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tokenloop-wandb-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const path = () => join(dir, JSON.parse(readFileSync(join(dir, 'wandb.json'), 'utf8')).file);
const contents = () => [...logRecords(readFileSync(path()))].map(({ record }) => readRecord(record));
const open = (resumeAfter?: number) =>
  wandbOfflineTracker({ dir, project: 'p', resumeAfter, now: () => 1_700_000_000_000 });

// That `wandb sync` sends such a file is shown by tools/trackers/wandb.ts, with W&B's own client.
it('numbers its records: header, run, history, summary, exit', async () => {
  const said: string[] = [];
  const tracker = await wandbOfflineTracker({ dir, project: 'p', announce: text => said.push(text), now: () => 0 });
  await tracker.log({ step: 0, metrics: { a: 1 } });
  await tracker.log({ step: 7, metrics: { a: Number.NaN } });
  await tracker.close();
  expect(contents()).toEqual([
    { num: 1, exit: false },
    { num: 2, exit: false },
    { num: 3, exit: false, step: 0 },
    { num: 4, exit: false, step: 7 },
    { num: 5, exit: false },
    { num: 6, exit: true },
  ]);
  expect(said).toEqual([
    expect.stringMatching(/^wandb: offline; send the run with: wandb sync .*offline-run-19700101_000000-\w{8}$/),
  ]);
});

it('continues its file behind the step of the checkpoint, also when the end of the file was torn off', async () => {
  const killed = await open();
  for (const step of [1, 2, 3, 4]) await killed.log({ step, metrics: { a: step } });
  await killed.close();
  truncateSync(path(), readFileSync(path()).length - 3);
  const resumed = await open(2);
  for (const step of [3, 4]) await resumed.log({ step, metrics: { a: step } });
  await resumed.close();
  const after = await open(4);
  await after.log({ step: 5, metrics: { a: 5 } });
  await after.close();
  expect(contents().map(({ num }) => num)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(contents().flatMap(({ step }) => step ?? [])).toEqual([1, 2, 3, 4, 5]);
});

it('frames records of any size, over the ends of blocks, and reads whole ones back, however the file is cut', () => {
  const sizes = fc.oneof(
    fc.integer({ min: 0, max: 40 }),
    fc.integer({ min: 32_700, max: 32_800 }),
    fc.integer({ min: 0, max: 99_000 }),
  );
  const cases = fc.record({
    lengths: fc.array(sizes, { maxLength: 6 }),
    cut: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(cases, ({ lengths, cut }) => {
      let log: Uint8Array = LOG_HEADER;
      const ends: number[] = [];
      for (const [i, length] of lengths.entries()) {
        log = Buffer.concat([log, appendRecord(log.length, new Uint8Array(length).fill(i + 1))]);
        ends.push(log.length);
      }
      const kept = Math.floor(cut * log.length);
      const read = [...logRecords(log.subarray(0, kept))];
      expect(read.map(({ end }) => end)).toEqual(ends.filter(end => end <= kept));
      expect(read.every(({ record }, i) => record.length === lengths[i] && record.every(byte => byte === i + 1))).toBe(
        true,
      );
    }),
    { numRuns: 50 },
  );
});
