import type { Overlap } from '../src/rollout/async.ts';
import { type Cell, Report, type Table, THREADS } from './harness.ts';
import { embedded } from './pipelines/embedded.ts';
import { type Measured, simulate, type Workload } from './pipelines/simulation.ts';

/** Throughput of the pipelines beside sync and beside the bound, max(generate, train). */

const WORK: Workload = {
  groups: 32,
  samples: 8,
  turns: 2,
  tokens: 40,
  spread: 0.6,
  stragglers: 0,
  tool: 400,
  rows: 128,
  perToken: 20,
  perPrefilled: 0.2,
  swap: 50,
  train: 0,
};

const PIPELINES: Readonly<Record<string, Overlap | undefined>> = {
  sync: undefined,
  async: { queueSize: 1, maxStaleness: 1 },
  'async + partial (keep)': { queueSize: 4, maxStaleness: 4, partial: 'keep' },
  'async + partial (recompute)': { queueSize: 4, maxStaleness: 4, partial: 'recompute' },
};

const percent = (share: number) => `${(100 * share).toFixed(1)} %`;

export async function run(): Promise<void> {
  const report = new Report('pipelines');
  const measure = async (title: string, work: Workload, pipelines = PIPELINES) => {
    const rows: (string | number)[][] = [];
    let sync: Measured | undefined;
    for (const [name, overlap] of Object.entries(pipelines)) {
      const measured = await simulate(work, overlap);
      sync ??= measured;
      const generate = (sync.workPerGroup * work.groups) / work.rows;
      const bound = (1000 * work.groups) / Math.max(generate, work.train);
      rows.push([
        name,
        measured.throughput,
        percent(measured.throughput / bound),
        measured.throughput / sync.throughput,
        percent(measured.generatorIdle),
        percent(measured.trainerIdle),
        measured.stalenessMean,
        measured.stalenessMax,
        measured.versionsPerSequence,
        measured.dropped,
        measured.lengthBias,
      ]);
    }
    const columns = ['pipeline', 'groups/s', 'of the bound', 'sync = 1', 'generator idle', 'trainer idle'];
    const more = ['staleness', 'at most', 'versions', 'dropped', 'length bias'];
    report.add({ title, columns: [...columns, ...more], rows });
  };

  const { workPerGroup } = await simulate({ ...WORK, train: 1000 }, undefined);
  const generate = (workPerGroup * WORK.groups) / WORK.rows;
  for (const [title, ratio] of [
    ['1:1', 1],
    ['3:1', 1 / 3],
    ['1:3', 3],
  ] as const) {
    await measure(`generate : train ${title}, log-normal answers and tools`, { ...WORK, train: generate * ratio });
  }
  const stragglers = { ...WORK, stragglers: 0.005, rows: 256, train: generate / 2 };
  await measure('one episode in 200 takes 20 times as long; a row for every episode of a batch', stragglers, {
    ...PIPELINES,
    'async + partial, stale weighed': { ...PIPELINES['async + partial (keep)'], whenStale: 'weigh' },
  });
  for (const tool of [0, 40]) report.add(await beside(tool));
  report.save();
}

/** The embedded engine: sync on all threads beside async with half of them for each side. */
async function beside(tool: number): Promise<Table> {
  const rows: Cell[][] = [];
  const overlap = { queueSize: 2, maxStaleness: 2, partial: 'keep' } as const;
  const sync = await embedded(undefined, { tool, threads: THREADS });
  const bound = Math.max(sync.generate, sync.learn);
  for (const [name, measured] of [
    ['sync', sync],
    ['async + partial (keep)', await embedded(overlap, { tool, threads: THREADS })],
  ] as const) {
    const { step, generatorIdle, trainerIdle, staleness } = measured;
    rows.push([
      name,
      1 / step,
      sync.step / step,
      percent(bound / step),
      percent(generatorIdle),
      percent(trainerIdle),
      staleness,
    ]);
  }
  const columns = ['pipeline', 'steps/s', 'sync = 1', 'of the bound', 'generator idle', 'trainer idle', 'staleness'];
  return { title: `embedded engine, 0.4M, ${THREADS} threads in all, tools of ${tool} ms`, columns, rows };
}
