import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { afterEach, describe, expect, it } from 'vitest';
import type { JsonServer } from '../../tests/support/json-server.ts';
import { type MlflowServer, mlflowServer } from '../../tests/support/mlflow-server.ts';
import { type WandbServer, wandbServer } from '../../tests/support/wandb-server.ts';
import { serializeEpisode } from '../episode/serialize.ts';
import type { Check } from '../testing/check.ts';
import { type TrackerPlace, trackerSuite } from '../testing/tracker-suite.ts';
import { consoleTracker } from './console.ts';
import type { MetricsRecord, Tracker } from './contracts.ts';
import { jsonlTracker } from './jsonl.ts';
import { mlflowTracker } from './mlflow.ts';
import { records } from './tensorboard/records.ts';
import { tensorboardTracker } from './tensorboard.ts';
import { logRecords } from './wandb/transaction-log.ts';
import { wandbTracker } from './wandb.ts';
import { wandbOfflineTracker } from './wandb-offline.ts';

/** Every tracker under one suite; those with a server run against ones that check the protocol. */
function register(checks: readonly Check[]): void {
  for (const { name, run, skip } of checks) it.skipIf(skip !== undefined)(skip ? `${name}: ${skip}` : name, run);
}

const ODD: Readonly<Record<string, number>> = { NaN: Number.NaN, Infinity, '-Infinity': -Infinity };
const numeric = (value: unknown) => (typeof value === 'string' ? ODD[value]! : (value as number));
function recordOf({ step, ...metrics }: Record<string, unknown>): MetricsRecord {
  return {
    step: step as number,
    metrics: Object.fromEntries(Object.entries(metrics).map(([k, v]) => [k, numeric(v)])),
  };
}

let server: JsonServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

describe('console', () => {
  const stream = { write: () => true };
  const make = async () => consoleTracker({ stream, totalSteps: 3, fields: [{ metric: 'a', label: 'a' }] });
  register(trackerSuite({ make, without: { reading: 'it is read by people' } }));
});

describe('console, on a terminal', () => {
  const stream = { write: () => true, isTTY: true };
  const make = async () => consoleTracker({ stream, totalSteps: 3, fields: [{ metric: 'a', label: 'a' }] });
  register(trackerSuite({ make, without: { reading: 'it is read by people' } }));
});

describe('JSONL', () => {
  const make = (place: { dir: string; resumeAfter?: number }) =>
    jsonlTracker({ ...place, serialize: serializeEpisode });
  const read = async (dir: string) => {
    const lines = readFileSync(join(dir, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
    return lines.map(line => recordOf(JSON.parse(line)));
  };
  register(trackerSuite({ make, read }));
});

describe('TensorBoard', () => {
  const make = (place: { dir: string; resumeAfter?: number }) =>
    tensorboardTracker({ ...place, decode: tokens => tokens.join(' '), config: 'a: 1' });
  const read = async (dir: string) => {
    const payloads = readdirSync(dir)
      .toSorted()
      .flatMap(name => [...records(readFileSync(join(dir, name)))]);
    return payloads.flatMap(({ payload }) => scalarsOf(payload) ?? []);
  };
  register(trackerSuite({ make, read, rounded: Math.fround }));
});

describe('Weights & Biases', () => {
  const make = async (place: { dir: string; resumeAfter?: number }) => {
    server ??= await wandbServer('key');
    return wandbTracker({ ...place, apiKey: 'key', baseUrl: server.url, project: 'p' });
  };
  const read = async (dir: string) => {
    const { id } = JSON.parse(readFileSync(join(dir, 'wandb.json'), 'utf8'));
    const lines = (server as WandbServer).runs.get(id)!.history;
    return lines.map(line => {
      const { _step, _timestamp, ...metrics } = JSON.parse(line.replace(/:(NaN|-?Infinity)/g, ':"$1"'));
      return recordOf({ step: _step, ...metrics });
    });
  };
  register(trackerSuite({ make, read }));
});

describe('Weights & Biases, offline', () => {
  const make = (place: { dir: string; resumeAfter?: number }) => wandbOfflineTracker({ ...place, project: 'p' });
  const read = async (dir: string) => {
    const { file } = JSON.parse(readFileSync(join(dir, 'wandb.json'), 'utf8'));
    return [...logRecords(readFileSync(join(dir, file)))].flatMap(({ record }) => {
      const { _step, _timestamp, ...metrics } = itemsOf(record);
      return _step === undefined ? [] : recordOf({ step: _step, ...metrics });
    });
  };
  register(trackerSuite({ make, read }));
});

describe('MLflow', () => {
  const make = async (place: { dir: string; resumeAfter?: number }) => {
    server ??= await mlflowServer(undefined);
    return mlflowTracker({ ...place, trackingUri: server.url, experiment: 'e' });
  };
  const read = async (dir: string) => {
    const { runId } = JSON.parse(readFileSync(join(dir, 'mlflow.json'), 'utf8'));
    const steps = new Map<number, Record<string, unknown>>();
    for (const { key, value, step } of (server as MlflowServer).runs.get(runId)!.metrics) {
      steps.set(step, { ...steps.get(step), [key]: value });
    }
    return [...steps].map(([step, metrics]) => recordOf({ step, ...metrics }));
  };
  register(trackerSuite({ make, read }));
});

/** Name → JSON text of the values of a record of history; nothing for another record. */
function itemsOf(record: Uint8Array): Record<string, unknown> {
  const reader = new BinaryReader(record);
  const values: Record<string, unknown> = {};
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field !== 2) {
      reader.skip(type);
      continue;
    }
    const history = new BinaryReader(reader.bytes());
    while (history.pos < history.len) {
      const [part, wire] = history.tag();
      if (part !== 1) {
        history.skip(wire);
        continue;
      }
      const item = new BinaryReader(history.bytes());
      item.tag();
      const key = item.string();
      item.tag();
      const text = item.string();
      values[key] = Object.hasOwn(ODD, text) ? text : JSON.parse(text);
    }
  }
  return values;
}

/** The scalars of an event, read without the code that wrote it. */
function scalarsOf(payload: Uint8Array): MetricsRecord | undefined {
  const event = new BinaryReader(payload);
  let step = 0;
  const metrics: Record<string, number> = {};
  while (event.pos < event.len) {
    const [field, type] = event.tag();
    if (field === 2) step = Number(event.int64());
    else if (field !== 5) event.skip(type);
    else {
      const summary = new BinaryReader(event.bytes());
      while (summary.pos < summary.len && summary.tag()) {
        const value = new BinaryReader(summary.bytes());
        let tag = '';
        while (value.pos < value.len) {
          const [part, wire] = value.tag();
          if (part === 1) tag = value.string();
          else if (part === 2) metrics[tag] = value.float();
          else value.skip(wire);
        }
      }
    }
  }
  return Object.keys(metrics).length > 0 ? { step, metrics } : undefined;
}

describe('trackerSuite', () => {
  interface Kept {
    records: MetricsRecord[];
  }
  /** A tracker in memory, and one thing that is wrong with it. */
  async function failing(change: (tracker: Tracker, kept: Kept) => Partial<Tracker>, drops = true): Promise<string[]> {
    const runs = new Map<string, Kept>();
    const make = async ({ dir, resumeAfter = -1 }: TrackerPlace) => {
      const kept = runs.get(dir) ?? { records: [] };
      runs.set(dir, kept);
      if (drops) kept.records = kept.records.filter(({ step }) => step <= resumeAfter);
      const tracker: Tracker = { name: 'memory', log: one => void kept.records.push(one), close: () => undefined };
      return { ...tracker, ...change(tracker, kept) };
    };
    const failed: string[] = [];
    for (const { name, run } of trackerSuite({ make, read: async dir => runs.get(dir)!.records })) {
      await run().catch(() => failed.push(name));
    }
    return failed;
  }

  it('passes one that keeps everything', async () => {
    expect(await failing(() => ({}))).toEqual([]);
  });

  it.each<[string, (tracker: Tracker, kept: Kept) => Partial<Tracker>, RegExp]>([
    [
      'drops what is not finite',
      tracker => ({
        log: ({ step, metrics }) =>
          tracker.log({
            step,
            metrics: Object.fromEntries(Object.entries(metrics).filter(([, v]) => Number.isFinite(v))),
          }),
      }),
      /every number/,
    ],
    ['writes in another order', (_, kept) => ({ log: one => void kept.records.unshift(one) }), /the order of calls/],
    [
      'writes after it was closed',
      tracker => ({ log: one => void setImmediate(() => tracker.log(one)) }),
      /has them all when it is closed/,
    ],
    ['fails at a message', () => ({ text: () => Promise.reject(new Error('no')) }), /messages/],
    [
      'minds how a run ends',
      () => ({ close: end => (end === 'failed' ? Promise.reject(new Error('no')) : undefined) }),
      /closed/,
    ],
  ])('fails one that %s', async (_, change, expected) => {
    expect(await failing(change)).toContainEqual(expect.stringMatching(expected));
  });

  it('fails one that has a step twice after a resume', async () => {
    expect(await failing(() => ({}), false)).toEqual([expect.stringMatching(/without a step twice/)]);
  });
});
