import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Episode, EpisodeRecorder, type Outcome } from '../episode/episode.ts';
import { failureLedger } from './ledger.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ledger-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const task = { id: 't', prompt: 'p', label: '', metadata: {} };
const episode = (id: string, outcome: Outcome): Episode =>
  new EpisodeRecorder({ id, task, group: 'g', sample: 0 }).finish(outcome);
const failed = (id: string, message: string, failure: 'timeout' | 'reward' = 'timeout') =>
  episode(id, { kind: 'failed', failure, message, step: 0 });

it('counts by class and keeps the first of each, in a file that is there when there is something to say', async () => {
  const path = join(directory, 'failures.json');
  const read = () => JSON.parse(readFileSync(path, 'utf8'));
  const ledger = await failureLedger(path);
  await ledger.episodes?.({ step: 1, phase: 'train', episodes: [episode('a', { kind: 'done' })] });
  expect(existsSync(path)).toBe(false);
  await ledger.episodes?.({ step: 2, phase: 'train', episodes: [failed('b', 'slow'), failed('c', 'slower')] });
  const then = await ledger.cursor?.();
  await ledger.episodes?.({ step: 2, phase: 'eval', episodes: [failed('d', 'NaN', 'reward')] });
  const first = { step: 2, phase: 'train', episode: 'b', message: 'slow' };
  const timeouts = { timeout: { count: 2, first } };
  expect(read()).toEqual({
    ...timeouts,
    reward: { count: 1, first: { step: 2, phase: 'eval', episode: 'd', message: 'NaN' } },
  });

  // A resumed run goes back to what was known at its checkpoint, one that begins anew to nothing.
  const resumed = await failureLedger(path, then);
  expect([read(), resumed.entries]).toEqual([timeouts, timeouts]);
  await failureLedger(path);
  expect(existsSync(path)).toBe(false);
});
