import { join } from 'node:path';
import { z } from 'zod';
import type { Episode } from '../episode/episode.ts';
import type { MetricsRecord, Tracker } from './contracts.ts';
import { JsonlFile } from './jsonl-file.ts';

export interface JsonlOptions {
  /** Directory of the run; created when missing. */
  readonly dir: string;
  /** One episode as a JSON object (`serializeEpisode`); without it no episodes are written. */
  readonly serialize?: (episode: Episode) => string;
  /** Continue the files of an earlier run, without the records of later steps than this one. */
  readonly resumeAfter?: number;
  /** What `cursor()` gave when that step was done. */
  readonly cursor?: unknown;
}

/** Ends of the two files in bytes. */
const Cursor = z.object({ metrics: z.int().nonnegative(), episodes: z.int().nonnegative().optional() });

/**
 * `metrics.jsonl`: `{"step": 3, "train/reward": 0.5, …}`, a line for each record, flat names; a number that JSON does
 * not have is written as a string ("NaN"). `episodes.jsonl`: the serialised episode with `step` and `phase` in front.
 */
export async function jsonlTracker({ dir, serialize, resumeAfter, cursor }: JsonlOptions): Promise<Tracker> {
  const mode = resumeAfter === undefined ? {} : { resumeAfter };
  const ends = Cursor.safeParse(cursor).data;
  const metricsFile = await JsonlFile.open(join(dir, 'metrics.jsonl'), { ...mode, cursor: ends?.metrics });
  const episodesFile = serialize
    ? await JsonlFile.open(join(dir, 'episodes.jsonl'), { ...mode, cursor: ends?.episodes }).catch(async error => {
        await metricsFile.close();
        throw error;
      })
    : undefined;
  return {
    name: 'jsonl',
    log: record => metricsFile.append([metricsLine(record)]),
    episodes: async ({ step, phase, episodes }) => {
      if (!episodesFile || !serialize) return;
      const head = `{"step":${step},"phase":${JSON.stringify(phase)},`;
      await episodesFile.append(episodes.map(episode => head + serialize(episode).slice(1)));
    },
    cursor: async () => {
      const [metrics, episodes] = await Promise.all([metricsFile.sync(), episodesFile?.sync()]);
      return { metrics, ...(episodes === undefined ? {} : { episodes }) };
    },
    close: async () => {
      await Promise.all([metricsFile.close(), episodesFile?.close()]);
    },
  };
}

/** A record as one flat JSON object; a number that JSON does not have is a string. */
export function metricsLine({ step, metrics }: MetricsRecord): string {
  return JSON.stringify({ step, ...metrics }, nonFinite);
}

function nonFinite(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
