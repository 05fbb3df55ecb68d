import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Kept, superseded } from './rotation.ts';

const checkpoints = fc
  .uniqueArray(fc.record({ step: fc.integer({ min: 1, max: 40 }), bytes: fc.integer({ min: 1, max: 9 }) }), {
    selector: ({ step }) => step,
    minLength: 1,
    maxLength: 12,
  })
  .map(all => all.sort((a, b) => a.step - b.step));
const limits = fc.record({
  maxCount: fc.integer({ min: 1, max: 5 }),
  maxBytes: fc.option(fc.nat(40), { nil: undefined }),
});

describe('rotation', () => {
  it('never takes the newest or the best, keeps to the limits where it can, and takes no more than it must', () => {
    fc.assert(
      fc.property(checkpoints, limits, fc.nat(), fc.nat(), (all, { maxCount, maxBytes }, a, b) => {
        const newest = all[a % all.length]!.step;
        const older = all.filter(({ step }) => step <= newest);
        const best = b % 3 === 0 ? undefined : older[b % older.length]!.step;
        const gone = superseded(all, { maxCount, maxBytes, newest, best });
        expect(gone).not.toContain(newest);
        expect(gone).not.toContain(best);
        expect(new Set(gone).size).toBe(gone.length);

        const holds = (kept: readonly Kept[]) =>
          kept.filter(({ step }) => step !== best).length <= maxCount &&
          (maxBytes === undefined || kept.reduce((sum, { bytes }) => sum + bytes, 0) <= maxBytes);
        const kept = all.filter(({ step }) => !gone.includes(step));
        const free = kept.filter(({ step }) => step !== newest && step !== best);
        expect(kept.every(({ step }) => step <= newest)).toBe(true);
        expect(holds(kept) || free.length === 0).toBe(true);

        // The oldest that may go, one after the other, and with the last of them still there a limit was broken.
        const may = older.filter(({ step }) => step !== newest && step !== best).map(({ step }) => step);
        const taken = gone.filter(step => step <= newest);
        expect(taken).toEqual(may.slice(0, taken.length));
        const last = taken.at(-1);
        if (last !== undefined)
          expect(holds(older.filter(({ step }) => kept.some(k => k.step === step) || step === last))).toBe(false);
      }),
    );
  });

  it('counts the best beside the others', () => {
    const all = [1, 2, 3, 4].map(step => ({ step, bytes: 10 }));
    expect(superseded(all, { maxCount: 2, newest: 4, best: 1 })).toEqual([2]);
    expect(superseded(all, { maxCount: 2, newest: 4 })).toEqual([1, 2]);
    expect(superseded(all, { maxCount: 9, maxBytes: 25, newest: 4, best: 2 })).toEqual([1, 3]);
    expect(superseded(all, { maxCount: 9, maxBytes: 1, newest: 4, best: 2 })).toEqual([1, 3]);
  });
});
