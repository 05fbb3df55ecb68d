import { rm } from 'node:fs/promises';
import { z } from 'zod';
import { FAILURE_CLASSES, type FailureClass } from '../episode/failure.ts';
import { writeFileAtomic } from '../storage/atomic.ts';
import type { Tracker } from './contracts.ts';

/** How often episodes failed in one way, and the first that did. */
const Entry = z.object({
  count: z.int().positive(),
  first: z.object({ step: z.int(), phase: z.enum(['train', 'eval']), episode: z.string(), message: z.string() }),
});
const Ledger = z.partialRecord(z.enum(FAILURE_CLASSES), Entry);

/** By class. */
export type Ledger = Readonly<Partial<Record<FailureClass, Readonly<z.infer<typeof Entry>>>>>;

export interface FailureLedger extends Tracker {
  readonly entries: Ledger;
}

/**
 * Counts the episodes that failed in a run, by class, with the first of each. The file at `path` follows; without any
 * failure there is none.
 * @param resumed what `cursor()` gave when the checkpoint was written that the run continues from
 */
export async function failureLedger(path: string, resumed?: unknown): Promise<FailureLedger> {
  const entries: Partial<Record<FailureClass, z.infer<typeof Entry>>> = Ledger.safeParse(resumed).data ?? {};
  const write = () => writeFileAtomic(path, `${JSON.stringify(entries, null, 2)}\n`);
  if (Object.keys(entries).length > 0) await write();
  else await rm(path, { force: true });
  return {
    name: 'failure ledger',
    entries,
    log: () => undefined,
    async episodes({ step, phase, episodes }) {
      let changed = false;
      for (const { id, outcome } of episodes) {
        if (outcome.kind !== 'failed') continue;
        const { failure, message } = outcome;
        const first = { step, phase, episode: id, message };
        const known = entries[failure];
        if (known === undefined) entries[failure] = { count: 1, first };
        else known.count += 1;
        changed = true;
      }
      if (changed) await write();
    },
    cursor: () => structuredClone(entries),
    close: () => undefined,
  };
}
