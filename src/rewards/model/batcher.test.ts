import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { gate } from '../../../tests/support/gate.ts';
import { Batcher, QueueFullError } from './batcher.ts';

const LIMITS = { maxBatch: 4, maxWaitMs: 0, maxQueue: 100 };

describe('Batcher', () => {
  it('gives every caller the results of its own items, in their order, however callers meet', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.integer(), { maxLength: 9 }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 7 }),
        async (callers, maxBatch) => {
          const sizes: number[] = [];
          const batcher = new Batcher<number, string>(
            async items => {
              sizes.push(items.length);
              await new Promise(resolve => setImmediate(resolve));
              return items.map(item => `<${item}>`);
            },
            { ...LIMITS, maxBatch, maxQueue: 1000 },
          );
          const results = await Promise.all(callers.map(items => batcher.all(items)));
          expect(results).toEqual(callers.map(items => items.map(item => `<${item}>`)));
          expect(Math.max(0, ...sizes)).toBeLessThanOrEqual(maxBatch);
          expect(batcher.statistics).toEqual({ batches: sizes.length, items: callers.flat().length, waiting: 0 });
        },
      ),
      { numRuns: 50 },
    );
  });

  it('waits for company no longer than it may, and not at all for a full batch', async () => {
    vi.useFakeTimers();
    try {
      const batches: number[][] = [];
      const batcher = new Batcher<number, number>(
        async items => {
          batches.push([...items]);
          return items;
        },
        { ...LIMITS, maxWaitMs: 10 },
      );
      const first = batcher.all([1, 2]);
      await vi.advanceTimersByTimeAsync(9);
      const second = batcher.all([3]);
      expect(batches).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      expect([await first, await second]).toEqual([[1, 2], [3]]);
      expect(await batcher.all([4, 5, 6, 7])).toEqual([4, 5, 6, 7]);
      expect(batches).toEqual([
        [1, 2, 3],
        [4, 5, 6, 7],
      ]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('lets a batch that fails fail its own callers alone', async () => {
    const batcher = new Batcher<number, number>(
      async items => {
        if (items.includes(13)) throw new Error('unlucky');
        return items;
      },
      { ...LIMITS, maxBatch: 1 },
    );
    const outcomes = await Promise.allSettled([batcher.all([1]), batcher.all([13]), batcher.all([2])]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('takes no batch whose results are too many or too few', async () => {
    const batcher = new Batcher<number, number>(async () => [1], LIMITS);
    await expect(batcher.all([1, 2])).rejects.toThrow(/2 items .* 1 results/);
  });

  it('refuses more than may wait', async () => {
    const { opened, open } = gate();
    const compute = async (items: readonly number[]) => {
      await opened;
      return items;
    };
    const batcher = new Batcher(compute, { ...LIMITS, maxQueue: 5 });
    const under = [batcher.all([1, 2, 3, 4]), batcher.all([5, 6, 7, 8, 9])];
    expect(() => batcher.all([10])).toThrow(QueueFullError);
    open();
    expect(await Promise.all(under)).toEqual([
      [1, 2, 3, 4],
      [5, 6, 7, 8, 9],
    ]);
  });

  it.each([
    [{ maxBatch: 0 }, /maxBatch must be a whole number ≥ 1, got 0/],
    [{ maxQueue: 1.5 }, /maxQueue .* got 1\.5/],
    [{ maxWaitMs: -1 }, /maxWaitMs must be ≥ 0, got -1/],
  ])('refuses %j', (limits, message) => {
    expect(() => new Batcher(async items => items, { ...LIMITS, ...limits })).toThrow(message);
  });
});
