import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { learningRateFactor, SCHEDULES, type Schedule, warmupSteps } from './schedule.ts';

const goldens: (Schedule & { factors: number[] })[] = JSON.parse(
  readFileSync(new URL('../../tests/goldens/schedules.json', import.meta.url), 'utf8'),
);

describe('learningRateFactor', () => {
  it('has goldens for every schedule', () => {
    expect(new Set(goldens.map(golden => golden.name))).toEqual(new Set(SCHEDULES));
  });

  it.each(goldens)('equals Transformers: $name, warm-up $warmupSteps of $totalSteps', ({ factors, ...schedule }) => {
    expect(factors).toHaveLength(schedule.totalSteps + 1);
    // Both sides compute in float64, in another order of operations.
    for (const [step, factor] of factors.entries()) expect(learningRateFactor(schedule, step)).toBeCloseTo(factor, 12);
  });

  it('stays where it ended after the last step', () => {
    for (const name of SCHEDULES) {
      const schedule = { name, warmupSteps: 2, totalSteps: 10, minLrRatio: 0.1 };
      expect(learningRateFactor(schedule, 25)).toBe(learningRateFactor(schedule, 10));
    }
  });
});

describe('warmupSteps', () => {
  it('rounds up', () => {
    expect([warmupSteps(0.03, 100), warmupSteps(0.03, 101), warmupSteps(0, 10)]).toEqual([3, 4, 0]);
  });
});
