import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { MetricsRecord, RunEnd, Tracker } from './contracts.ts';
import { Outbox, type Stamped } from './outbox.ts';
import { readNote, writeNote } from './run-note.ts';
import { type RunPlace, wandbApi } from './wandb/api.ts';

export interface WandbOptions {
  /** Directory of the run, where its id on the server is noted. */
  readonly dir: string;
  /** From the environment (`WANDB_API_KEY`); reaches no file and no message. */
  readonly apiKey: string;
  /** https://api.wandb.ai when not given. */
  readonly baseUrl?: string | undefined;
  readonly project: string;
  /** Team or user; the default of the key's owner when not given. */
  readonly entity?: string | undefined;
  readonly group?: string | undefined;
  readonly runName?: string | undefined;
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** Continue the run that is noted in `dir`. */
  readonly resumeAfter?: number | undefined;
  /** Told the address of the run when it is there. */
  readonly announce?: ((message: string) => void) | undefined;
  /** Longest time that closing waits for the network; 20 s when not given. */
  readonly closeMs?: number | undefined;
}

type Item = Stamped & ({ readonly metrics: MetricsRecord['metrics']; readonly at: number } | { readonly end: RunEnd });

/** A server that hears nothing for some minutes takes the run for crashed; the open client sends a sign this often. */
const HEARTBEAT_MS = 30_000;
/** What the server shows as finished, failed and killed. */
export const EXIT_CODES: Readonly<Record<RunEnd, number>> = { finished: 0, failed: 1, interrupted: 255 };
const Note = z.object({ id: z.string().regex(/^\w+$/) });

/**
 * Metrics on Weights & Biases, over its HTTP interface. Nothing is sent twice: lines have a place in the run's history,
 * and a resumed run begins behind the last step that the server has.
 */
export async function wandbTracker(options: WandbOptions): Promise<Tracker> {
  const { dir, project, entity, group, runName, config, resumeAfter, announce, closeMs } = options;
  const { baseUrl = 'https://api.wandb.ai' } = options;
  const api = wandbApi({ baseUrl, apiKey: options.apiKey });
  const note = join(dir, 'wandb.json');
  const noted = resumeAfter === undefined ? undefined : Note.optional().parse(await readNote(note));
  const id = noted?.id ?? newId();
  await writeNote(note, { id });

  let run: { readonly place: RunPlace; readonly lastStep: number } | undefined;
  let lines = 0;
  const summary: Record<string, number> = {};
  const connect = async (signal: AbortSignal) => {
    const earlier = noted && (await api.resumeStatus({ name: id, project, entity }, signal));
    const place = await api.upsertRun(
      {
        name: id,
        project,
        entity,
        groupName: group,
        displayName: runName,
        config:
          config && JSON.stringify(Object.fromEntries(Object.entries(config).map(([k, value]) => [k, { value }]))),
      },
      signal,
    );
    lines = earlier?.lines ?? 0;
    announce?.(`wandb: ${appOf(baseUrl)}/${place.entity}/${place.project}/runs/${place.name}`);
    return { place, lastStep: earlier?.lastStep ?? -1 };
  };
  const send = async (items: readonly Item[], signal: AbortSignal) => {
    run ??= await connect(signal);
    const { place, lastStep } = run;
    const fresh = items.flatMap(item => ('metrics' in item && item.step > lastStep ? item : []));
    for (const { step, metrics, at } of fresh) Object.assign(summary, metrics, { _step: step, _timestamp: at });
    const end = items.flatMap(item => ('end' in item ? item.end : [])).at(-1);
    const files = {
      'wandb-history.jsonl': { offset: lines, content: fresh.map(historyLine) },
      'wandb-summary.json': { offset: 0, content: [looseJson(summary)] },
    };
    const exit = end === undefined ? {} : { complete: true, exitcode: EXIT_CODES[end] };
    await api.stream(place, { ...(fresh.length > 0 ? { files } : {}), ...exit }, signal);
    lines += fresh.length;
  };
  const outbox = new Outbox<Item>({ send, closeMs });
  const heartbeat = setInterval(() => {
    // One that fails is no loss: the records that follow will tell.
    if (run && outbox.idle) api.stream(run.place, {}, AbortSignal.timeout(HEARTBEAT_MS)).catch(() => undefined);
  }, HEARTBEAT_MS);
  heartbeat.unref();

  let last = resumeAfter ?? 0;
  return {
    name: 'wandb',
    log: ({ step, metrics }) => {
      last = step;
      outbox.push({ step, metrics, at: Date.now() / 1000 });
    },
    close: async (end = 'finished') => {
      clearInterval(heartbeat);
      try {
        outbox.push({ step: last, end });
      } finally {
        await outbox.close();
      }
    },
  };
}

function historyLine({ step, metrics, at }: Extract<Item, { metrics: unknown }>): string {
  return looseJson({ ...metrics, _step: step, _timestamp: at });
}

/** JSON in which NaN and infinities stand bare, as W&B's client writes them. */
function looseJson(values: Readonly<Record<string, number>>): string {
  const entries = Object.entries(values).map(([name, value]) => `${JSON.stringify(name)}:${String(value)}`);
  return `{${entries.join(',')}}`;
}

/** Eight letters and digits, as W&B's own clients draw them. */
export function newId(): string {
  return Array.from({ length: 8 }, () => randomInt(36).toString(36)).join('');
}

/** The web page beside the interface. */
function appOf(baseUrl: string): string {
  return baseUrl.replace(/\/+$/, '').replace('//api.wandb.ai', '//wandb.ai');
}
