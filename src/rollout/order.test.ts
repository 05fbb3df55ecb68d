import { describe, expect, it } from 'vitest';
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
