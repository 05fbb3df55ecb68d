import { mkdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { AppendFile } from './append-file.ts';
import type { Tracker } from './contracts.ts';
import { readNote, writeNote } from './run-note.ts';
import { exitRecord, headerRecord, historyRecord, readRecord, runRecord, summaryRecord } from './wandb/records.ts';
import { appendRecord, LOG_HEADER, logRecords } from './wandb/transaction-log.ts';
import { EXIT_CODES, newId, type WandbOptions } from './wandb.ts';

const Note = z.object({ id: z.string().regex(/^\w+$/), file: z.string() });

type OfflineOptions = Omit<WandbOptions, 'apiKey' | 'baseUrl' | 'closeMs'> & { readonly now?: () => number };

/**
 * A run for Weights & Biases without a network: `<dir>/wandb/offline-run-<time>-<id>`, which `wandb sync` sends. Resumed
 * before it was sent, it continues its file, without what that has of later steps.
 */
export async function wandbOfflineTracker(options: OfflineOptions): Promise<Tracker> {
  const { dir, project, entity, group, runName, config = {}, resumeAfter, announce, now = Date.now } = options;
  const notePath = join(dir, 'wandb.json');
  const noted = resumeAfter === undefined ? undefined : Note.optional().parse(await readNote(notePath));
  const id = noted?.id ?? newId();
  const file = noted?.file ?? join('wandb', `offline-run-${stamp(now())}-${id}`, `run-${id}.wandb`);
  const path = join(dir, file);
  await mkdir(join(path, '..'), { recursive: true });

  const start = { length: 0, num: 0 };
  if (noted && resumeAfter !== undefined) Object.assign(start, await keepUpTo(path, resumeAfter));
  const log = await AppendFile.open(path, async () => start.length);
  let { length, num } = start;
  const write = async (bytes: Uint8Array) => {
    length += bytes.length;
    await log.append(bytes);
  };
  const add = (record: (num: number) => Uint8Array) => {
    num += 1;
    return write(appendRecord(length, record(num)));
  };
  if (num === 0) {
    await write(LOG_HEADER);
    await add(n => headerRecord(n, '1'));
    await add(n => runRecord(n, { id, project, entity, group, displayName: runName, config, startTime: now() }));
    await writeNote(notePath, { id, file });
  }
  announce?.(`wandb: offline; send the run with: wandb sync ${join(dir, 'wandb', basename(join(path, '..')))}`);

  const summary: Record<string, string> = {};
  return {
    name: 'wandb',
    log: ({ step, metrics }) => {
      const all = Object.entries({ ...metrics, _step: step, _timestamp: now() / 1000 });
      const values = Object.fromEntries(all.map(([name, value]) => [name, String(value)]));
      Object.assign(summary, values);
      return add(n => historyRecord(n, step, values));
    },
    close: async (end = 'finished') => {
      try {
        if (Object.keys(summary).length > 0) await add(n => summaryRecord(n, summary));
        await add(n => exitRecord(n, EXIT_CODES[end]));
      } finally {
        await log.close();
      }
    },
  };
}

/** Where the records end that a resumed run keeps, and the number of the last of them. */
async function keepUpTo(path: string, last: number): Promise<{ readonly length: number; readonly num: number }> {
  let kept = { length: 0, num: 0 };
  for (const { record, end } of logRecords(await readFile(path))) {
    const { num, step = -1, exit } = readRecord(record);
    if (exit || step > last) break;
    kept = { length: end, num };
  }
  return kept;
}

/** UTC as 20250131_235959. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '_');
}
