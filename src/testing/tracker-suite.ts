import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Episode, EpisodeRecorder } from '../episode/episode.ts';
import type { MetricsRecord, RunEnd, Tracker } from '../tracking/contracts.ts';
import { type Check, checkUnless } from './check.ts';

export interface TrackerPlace {
  /** Empty at the first call for it; the run's own. */
  readonly dir: string;
  /** Continue the run in `dir` behind this step. */
  readonly resumeAfter?: number;
}

export type TrackerFeature = 'reading' | 'resuming';

export interface TrackerSuiteOptions {
  readonly make: (place: TrackerPlace) => Promise<Tracker>;
  /** What the destination has of the run in `dir`, in order; non-finite numbers as numbers. */
  readonly read?: (dir: string) => Promise<readonly MetricsRecord[]>;
  /** How exact the destination is; not at all when not given (`Math.fround` for single precision). */
  readonly rounded?: (value: number) => number;
  /** What this tracker cannot do, with the reason. */
  readonly without?: { readonly [K in TrackerFeature]?: string };
}

/** What every tracker must keep, as checks for any test runner: `for (const { name, run } of checks) it(name, run)`. */
export function trackerSuite(options: TrackerSuiteOptions): Check[] {
  const { make, read = async () => [], rounded = value => value, without = {} } = options;
  const inPlace = (check: (dir: string) => Promise<void>) => async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tokenloop-tracker-'));
    try {
      await check(dir);
    } finally {
      await rm(dir, { recursive: true });
    }
  };
  const expected = (records: readonly MetricsRecord[]) =>
    records.map(({ step, metrics }) => ({
      step,
      metrics: Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, rounded(value)])),
    }));
  const reading = [without.reading];

  return [
    checkUnless(
      reading,
      'keeps every number, the odd ones too',
      inPlace(async dir => {
        const records = [
          { step: 0, metrics: { 'eval/tasks/pass1': 0.5 } },
          { step: 1, metrics: { 'train/kl': -1e-7, 'train/loss': Number.NaN, 'rollout/num_samples': 123456789 } },
          { step: 2, metrics: { 'train/loss': 1 / 3, 'timing/step_total': 0 } },
          { step: 1000000, metrics: { 'train/loss': -0.25 } },
        ];
        const tracker = await make({ dir });
        for (const record of records) await tracker.log(record);
        await tracker.close();
        assert.deepEqual(await read(dir), expected(records));
      }),
    ),
    checkUnless(
      reading,
      'keeps the order of calls that were not awaited, and has them all when it is closed',
      inPlace(async dir => {
        const records = Array.from({ length: 300 }, (_, step) => ({ step, metrics: { a: step / 2 } }));
        const tracker = await make({ dir });
        await Promise.all(records.map(async record => tracker.log(record)));
        await tracker.close();
        assert.deepEqual(await read(dir), records);
      }),
    ),
    checkUnless(
      [without.reading, without.resuming],
      'continues a run without a gap and without a step twice',
      inPlace(async dir => {
        const killed = await make({ dir });
        for (const step of [0, 1, 2, 3]) await killed.log({ step, metrics: { a: step } });
        await killed.close('interrupted');
        const resumed = await make({ dir, resumeAfter: 2 });
        for (const step of [3, 4]) await resumed.log({ step, metrics: { a: step } });
        await resumed.close();
        const steps = [0, 1, 2, 3, 4];
        assert.deepEqual(
          await read(dir),
          steps.map(step => ({ step, metrics: { a: step } })),
        );
      }),
    ),
    {
      name: 'takes episodes of every outcome, none at all, messages, and steps without a number',
      run: inPlace(async dir => {
        const tracker = await make({ dir });
        const episodes = [episode('a', 'done'), episode('b', 'failed')];
        const before = structuredClone(episodes);
        await tracker.log({ step: 1, metrics: {} });
        await tracker.episodes?.({ step: 1, phase: 'train', episodes });
        await tracker.episodes?.({ step: 1, phase: 'eval', episodes: [] });
        await tracker.text?.('a message\nof two lines');
        await tracker.close();
        assert.deepEqual(episodes, before, 'episodes were changed');
      }),
    },
    {
      name: 'can be closed before anything was logged, and whatever the end of the run',
      run: async () => {
        for (const end of ['finished', 'interrupted', 'failed', undefined] satisfies (RunEnd | undefined)[]) {
          await inPlace(async dir => {
            const tracker = await make({ dir });
            await tracker.close(end);
          })();
        }
      },
    },
  ];
}

function episode(id: string, kind: 'done' | 'failed'): Episode {
  const task = { id, prompt: 'p', label: '', metadata: {} };
  const recorder = new EpisodeRecorder({ id, task, group: id, sample: 0 });
  const prompt = recorder.feed(-1, 'prompt', Int32Array.of(1, 2));
  const sampled = { tokens: Int32Array.of(3), logprobs: Float32Array.of(-0.5), versions: Int32Array.of(0) };
  const segment = recorder.sampled(prompt, sampled);
  if (kind === 'failed') return recorder.finish({ kind, failure: 'environment', message: 'closed', step: 0 });
  recorder.step({ segment, reward: 1, finishReason: 'stop' });
  return recorder.finish({ kind });
}
