import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Event, encodeEvent } from './tensorboard/event.ts';
import { frame, records } from './tensorboard/records.ts';
import { tensorboardTracker } from './tensorboard.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tokenloop-tensorboard-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const now = () => 5_000;
const files = () => readdirSync(dir).toSorted();
const hex = (payload: Uint8Array) => Buffer.from(payload).toString('hex');
const payloads = (name: string) => [...records(readFileSync(join(dir, name)))].map(({ payload }) => hex(payload));
const written = (...events: Omit<Event, 'wallTime'>[]) =>
  events.map(event => hex(encodeEvent({ wallTime: 5, ...event })));
const opened = { fileVersion: 'brain.Event:2' };
const scalar = (step: number, value: number) => ({ step, values: [{ tag: 'train/reward', scalar: value }] });

it('writes all metrics of a step as one event', async () => {
  const tracker = await tensorboardTracker({ dir, now });
  await tracker.log({ step: 0, metrics: { 'eval/pass1': 0.5 } });
  await tracker.log({ step: 1, metrics: { 'train/reward': 1, 'train/kl': Number.NaN } });
  await tracker.close();
  const values = [
    { tag: 'train/reward', scalar: 1 },
    { tag: 'train/kl', scalar: Number.NaN },
  ];
  const first = { step: 0, values: [{ tag: 'eval/pass1', scalar: 0.5 }] };
  expect(payloads(files()[0]!)).toEqual(written(opened, first, { step: 1, values }));
});

it('resumes behind the step of the checkpoint: later records leave the file, and what has read them is told', async () => {
  const killed = await tensorboardTracker({ dir, now });
  for (const step of [1, 2, 3, 4]) await killed.log({ step, metrics: { 'train/reward': step } });
  await killed.close();
  const resumed = await tensorboardTracker({ dir, now, resumeAfter: 2 });
  await resumed.log({ step: 3, metrics: { 'train/reward': 30 } });
  await resumed.close();
  const [first, second] = files();
  expect(payloads(first!)).toEqual(written(opened, scalar(1, 1), scalar(2, 2)));
  expect(payloads(second!)).toEqual(written(opened, { step: 3, start: true }, scalar(3, 30)));
});

it('leaves no part of a record that a crash cut short', async () => {
  const killed = await tensorboardTracker({ dir, now });
  await killed.log({ step: 1, metrics: { 'train/reward': 1 } });
  await killed.close();
  const [name] = files();
  const whole = readFileSync(join(dir, name!));
  writeFileSync(join(dir, name!), Buffer.concat([whole, frame(Buffer.from('x')).subarray(0, 7)]));
  await (await tensorboardTracker({ dir, now, resumeAfter: 5 })).close();
  expect(readFileSync(join(dir, name!))).toEqual(whole);
});
