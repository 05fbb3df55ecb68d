import { expect, it } from 'vitest';
import { fanOut, type Tracker, type TrackerFailure } from './tracker.ts';

function recording(name: string, log: string[]): Tracker {
  return {
    name,
    log: ({ step }) => void log.push(`${name} log ${step}`),
    text: message => void log.push(`${name} text ${message}`),
    close: () => void log.push(`${name} close`),
  };
}

it('gives every call to every tracker, and skips what one does not take', async () => {
  const seen: string[] = [];
  const all = fanOut([recording('a', seen), recording('b', seen)], () => expect.unreachable());
  await all.log({ step: 3, metrics: {} });
  await all.episodes({ step: 3, phase: 'train', episodes: [] });
  await all.text('hello');
  await all.close();
  expect(seen).toEqual(['a log 3', 'b log 3', 'a text hello', 'b text hello', 'a close', 'b close']);
  expect(all.failures.size).toBe(0);
});

it('reports and counts failures, thrown or rejected, and goes on', async () => {
  const seen: string[] = [];
  const reported: TrackerFailure[] = [];
  const thrown = new Error('thrown');
  const rejected = new Error('rejected');
  const throwing: Tracker = {
    ...recording('throwing', []),
    log: () => {
      throw thrown;
    },
  };
  const rejecting: Tracker = { ...recording('rejecting', []), log: () => Promise.reject(rejected) };
  const all = fanOut([throwing, rejecting, recording('good', seen)], failure => reported.push(failure));
  await all.log({ step: 1, metrics: {} });
  await all.log({ step: 2, metrics: {} });
  await all.close();
  expect(seen).toEqual(['good log 1', 'good log 2', 'good close']);
  expect(reported).toEqual([
    { tracker: 'throwing', error: thrown, count: 1 },
    { tracker: 'rejecting', error: rejected, count: 1 },
    { tracker: 'throwing', error: thrown, count: 2 },
    { tracker: 'rejecting', error: rejected, count: 2 },
  ]);
  expect(Object.fromEntries(all.failures)).toEqual({ throwing: 2, rejecting: 2 });
});

it('gathers the cursors of the trackers that have one, without that of one which fails', async () => {
  const failures: TrackerFailure[] = [];
  const all = fanOut(
    [
      { ...recording('a', []), cursor: () => ({ bytes: 3 }) },
      recording('b', []),
      { ...recording('c', []), cursor: () => Promise.reject(new Error('disk')) },
    ],
    failure => failures.push(failure),
  );
  expect(await all.cursors()).toEqual({ a: { bytes: 3 } });
  expect(failures).toMatchObject([{ tracker: 'c', count: 1 }]);
});
