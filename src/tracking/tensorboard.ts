import { mkdir, open, readdir, readFile, truncate } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Episode } from '../episode/episode.ts';
import { AppendFile } from './append-file.ts';
import type { Tracker } from './contracts.ts';
import { asCode, episodeMarkdown, episodeValues } from './episode-values.ts';
import { histogramOf } from './histogram.ts';
import { encodeEvent, type SummaryValue, stepOf } from './tensorboard/event.ts';
import { frame, records } from './tensorboard/records.ts';

export interface TensorboardOptions {
  /** Directory of the run's event files: one run in TensorBoard. */
  readonly dir: string;
  /** Text of tokens; without it no sample episodes are written. */
  readonly decode?: ((tokens: Int32Array) => string) | undefined;
  /** Sample episodes of a step; 2 when not given. */
  readonly samples?: number | undefined;
  /** The run's configuration, shown as text. */
  readonly config?: string | undefined;
  /** Continue an earlier run, without what it wrote for later steps than this one. */
  readonly resumeAfter?: number | undefined;
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
}

/**
 * Event files that `tensorboard --logdir` reads: every metric as a scalar, rewards, lengths and turns of a step's
 * episodes as histograms (`train/…`, `eval/…` by phase), sample episodes as text.
 */
export async function tensorboardTracker(options: TensorboardOptions): Promise<Tracker> {
  const { dir, decode, samples = 2, config, resumeAfter, now = Date.now } = options;
  await mkdir(dir, { recursive: true });
  const earlier = (await readdir(dir)).filter(name => name.includes('tfevents'));
  if (resumeAfter !== undefined) for (const name of earlier) await cut(join(dir, name), resumeAfter);
  const file = await AppendFile.open(await freshFile(dir, now()));
  const write = (step: number, values: readonly SummaryValue[]) =>
    file.append(frame(encodeEvent({ wallTime: now() / 1000, step, values })));

  await file.append(frame(encodeEvent({ wallTime: now() / 1000, fileVersion: 'brain.Event:2' })));
  if (earlier.length > 0) {
    // A TensorBoard that has read the earlier files already forgets what it holds of these steps.
    const step = resumeAfter === undefined ? 0 : resumeAfter + 1;
    await file.append(frame(encodeEvent({ wallTime: now() / 1000, step, start: true })));
  }
  if (config !== undefined && resumeAfter === undefined) await write(0, [{ tag: 'config', text: asCode(config) }]);

  return {
    name: 'tensorboard',
    log: ({ step, metrics }) =>
      write(
        step,
        Object.entries(metrics).map(([tag, scalar]) => ({ tag, scalar })),
      ),
    episodes: ({ step, phase, episodes }) => {
      const values: SummaryValue[] = Object.entries(episodeValues(episodes)).flatMap(([name, of]) => {
        const histogram = histogramOf(of);
        return histogram ? [{ tag: `${phase}/${name}`, histogram }] : [];
      });
      if (decode) values.push(...sampleTexts(episodes.slice(0, samples), phase, decode));
      return values.length > 0 ? write(step, values) : undefined;
    },
    close: () => file.close(),
  };
}

function sampleTexts(episodes: readonly Episode[], phase: string, decode: (tokens: Int32Array) => string) {
  return episodes.map((episode, i) => ({ tag: `${phase}/sample_${i}`, text: episodeMarkdown(episode, decode) }));
}

/** Cuts an event file before its first record of a step later than `last`. */
async function cut(path: string, last: number): Promise<void> {
  let end = 0;
  for (const record of records(await readFile(path))) {
    if (stepOf(record.payload) > last) break;
    end = record.end;
  }
  await truncate(path, end);
}

/** A file that was not there: files of a directory are read in the order of their names. */
async function freshFile(dir: string, ms: number): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const number = String(attempt).padStart(3, '0');
    const seconds = String(Math.floor(ms / 1000)).padStart(10, '0');
    const path = join(dir, `events.out.tfevents.${seconds}.${hostname()}.${process.pid}.${number}`);
    try {
      await (await open(path, 'wx')).close();
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
