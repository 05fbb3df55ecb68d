import { expect, it } from 'vitest';
import type { Tracker } from './contracts.ts';
import { fanOut } from './fan-out.ts';
import { TrackerError } from './tracker-error.ts';

function recording(name: string, log: string[]): Tracker {
  return {
    name,
    log: ({ step }) => void log.push(`${name} log ${step}`),
    text: message => void log.push(`${name} text ${message}`),
    close: end => void log.push(`${name} close ${end}`),
  };
}

it('gives every call to every tracker, and skips what one does not take', async () => {
  const seen: string[] = [];
  const all = fanOut([recording('a', seen), recording('b', seen)], { report: () => expect.unreachable() });
  await all.log({ step: 3, metrics: {} });
  await all.episodes({ step: 3, phase: 'train', episodes: [] });
  await all.text('hello');
  await all.close('interrupted');
  const expected = ['log 3', 'text hello', 'close interrupted'].flatMap(call => [`a ${call}`, `b ${call}`]);
  expect(seen).toEqual(expected);
  expect(all.failures.size).toBe(0);
});

it('gives the cursors of the trackers that have one', async () => {
  const seen: string[] = [];
  const all = fanOut([recording('a', seen), { ...recording('b', seen), cursor: () => ({ end: 5 }) }], {
    report: () => expect.unreachable(),
  });
  expect(await all.cursors()).toEqual({ b: { end: 5 } });
});

it('reports the first failure, thrown or rejected, with what is lost, counts them all, and goes on', async () => {
  const seen: string[] = [];
  const reported: string[] = [];
  const throwing: Tracker = {
    ...recording('throwing', []),
    log: () => {
      throw new Error('no room');
    },
  };
  const rejecting: Tracker = {
    ...recording('rejecting', []),
    log: () => Promise.reject(new TrackerError('no route', 'nothing is lost yet')),
    close: () => Promise.reject(new TrackerError('no route', '2 records are lost')),
  };
  const all = fanOut([throwing, rejecting, recording('good', seen)], { report: message => reported.push(message) });
  for (const step of [1, 2]) await all.log({ step, metrics: {} });
  await all.close();
  expect(seen).toEqual(['good log 1', 'good log 2', 'good close finished']);
  expect(reported).toEqual([
    'tracker throwing: no room; what was logged at step 1 is lost there; the run goes on',
    'tracker rejecting: no route; nothing is lost yet; the run goes on',
    'tracker rejecting: no route, after 2 earlier failures; 2 records are lost; the run goes on',
  ]);
  expect(Object.fromEntries(all.failures)).toEqual({ throwing: 2, rejecting: 3 });
});

it('waits for a tracker that hangs once, and not again', async () => {
  const seen: string[] = [];
  const reported: string[] = [];
  let calls = 0;
  const hanging: Tracker = {
    name: 'hanging',
    log: () => {
      calls += 1;
      return new Promise(() => undefined);
    },
    close: () => {
      calls += 1;
    },
  };
  const all = fanOut([hanging, recording('good', seen)], { report: text => reported.push(text), deadlineMs: 1 });
  for (const step of [1, 2]) await all.log({ step, metrics: {} });
  await all.close();
  expect(calls).toBe(1);
  expect(seen).toEqual(['good log 1', 'good log 2', 'good close finished']);
  expect(reported).toEqual([
    'tracker hanging: it did not answer within 0.001 s; what was logged at step 1 and all that follows is lost there; the run goes on',
  ]);
});
