import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mixRows } from '../data/mixture.ts';
import { TaskOrder } from './order.ts';
import { toTask } from './tasks.ts';

const tasks = Array.from({ length: 7 }, (_, i) => toTask({ prompt: `p${i}` }, i, 'set'));
const take = (order: TaskOrder, n: number) => Array.from({ length: n }, () => order.nextTask().group);

describe('TaskOrder', () => {
  it('takes every task once in each pass, every pass in another order', () => {
    const groups = take(new TaskOrder(tasks, 1), 21);
    expect(new Set(groups).size).toBe(21);
    const passes = [0, 1, 2].map(pass => groups.slice(pass * 7, pass * 7 + 7).map(group => group.split('@')[0]!));
    for (const pass of passes) expect([...pass].sort()).toEqual(tasks.map(({ id }) => id));
    expect(new Set(passes.map(pass => pass.join())).size).toBe(3);
  });

  it('continues where a cursor stands', () => {
    for (const consumed of [0, 3, 7, 10, 14]) {
      const whole = take(new TaskOrder(tasks, 5), 20);
      const first = new TaskOrder(tasks, 5);
      take(first, consumed);
      const second = new TaskOrder(tasks, 5);
      second.seek(JSON.parse(JSON.stringify(first.cursor)));
      expect(take(second, 20 - consumed)).toEqual(whole.slice(consumed));
    }
  });

  it('refuses a cursor of another dataset and an empty dataset', () => {
    expect(() => new TaskOrder(tasks, 1).seek({ epoch: 0, position: 7 })).toThrow(
      /row 7 of a pass, but there are 7 rows/,
    );
    expect(() => new TaskOrder([], 1)).toThrow(/at least one row/);
  });
});

describe('a mixture', () => {
  const parts = fc.array(
    fc.record({ rows: fc.integer({ min: 20, max: 60 }), p: fc.double({ min: 0.2, max: 1, noNaN: true }) }),
    {
      minLength: 2,
      maxLength: 4,
    },
  );
  const mixed = (given: readonly { rows: number; p: number }[]) =>
    mixRows(
      given.map(({ rows }, k) =>
        Array.from({ length: rows }, (_, i) => ({ id: `${k}:${i}`, prompt: 'x', label: '', metadata: {} })),
      ),
      given.map(({ p }) => p),
    );

  it('draws each part as often as its share says, each row of it before any comes again', () => {
    fc.assert(
      fc.property(parts, fc.nat(), (given, seed) => {
        const rows = mixed(given);
        const order = new TaskOrder(rows, seed);
        const groups = Array.from({ length: 2 * rows.length }, () => order.nextTask().group);
        expect(new Set(groups).size).toBe(groups.length);
        const sum = given.reduce((total, { p }) => total + p, 0);
        given.forEach(({ rows: count, p }, k) => {
          const drawn = groups.filter(group => group.startsWith(`${k}:`));
          // Rounded once in each of two passes.
          expect(Math.abs(drawn.length - (2 * rows.length * p) / sum)).toBeLessThan(2);
          const first = drawn.slice(0, count).map(group => group.split('@')[0]);
          expect(new Set(first).size).toBe(Math.min(count, drawn.length));
        });
      }),
      { numRuns: 50 },
    );
  });

  it('continues at a cursor exactly', () => {
    fc.assert(
      fc.property(parts, fc.nat(), fc.nat(150), (given, seed, done) => {
        const rows = mixed(given);
        const whole = new TaskOrder(rows, seed);
        for (let i = 0; i < done; i++) whole.nextTask();
        const resumed = new TaskOrder(rows, seed);
        resumed.seek(whole.cursor);
        for (let i = 0; i < 100; i++) expect(resumed.nextTask()).toEqual(whole.nextTask());
      }),
      { numRuns: 50 },
    );
  });

  it('refuses probabilities that are none', () => {
    expect(() => mixRows([['a'], ['b']], [1])).toThrow(/1 probabilities for 2 datasets/);
    expect(() => mixRows([['a'], ['b']], [1, 0])).toThrow(/is 0; give a positive number/);
    expect(() => mixRows([['a'], ['b']], [1, 0.001])).toThrow(/none of the 2 draws/);
  });
});
