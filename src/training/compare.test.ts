import { expect, it } from 'vitest';
import { compareEvaluations, type EvaluationFile } from './compare.ts';

function evaluation(solved: Readonly<Record<string, number>>): EvaluationFile {
  const tasks = Object.entries(solved).map(([id, count]) => {
    return { id, source: id[0]!, attempts: 4, solved: count, failed: 0, reward: count / 2 };
  });
  const plan = { samples: 4, temperature: 1, pass_score: 1, seed: 42 };
  return { format: 1, model: 'm', version: 0, plan, metrics: {}, tasks };
}

it('pairs tasks by source and id, and counts those without a partner', () => {
  const before = evaluation({ a1: 0, a2: 1, a3: 2, b1: 4, b2: 0 });
  const after = evaluation({ a1: 1, a2: 2, a3: 3, b1: 4, c1: 4 });
  const { sources, unpaired } = compareEvaluations(before, after);
  expect(unpaired).toBe(2);
  expect(sources).toMatchObject([
    { source: 'a', metric: 'pass1', tasks: 3, before: 0.25, after: 0.5, difference: 0.25, low: 0.25, high: 0.25 },
    { source: 'a', metric: 'reward', tasks: 3, before: 0.5, after: 1, difference: 0.5 },
    { source: 'b', metric: 'pass1', tasks: 1, difference: 0, p: 1 },
    { source: 'b', metric: 'reward', tasks: 1 },
  ]);
});

it('rewards are compared where both have them', () => {
  const before = evaluation({ a1: 1, a2: 1 });
  const after = evaluation({ a1: 1, a2: 1 });
  delete after.tasks[0]!.reward;
  const { sources } = compareEvaluations(before, after);
  expect(sources.map(({ metric, tasks }) => [metric, tasks])).toEqual([
    ['pass1', 2],
    ['reward', 1],
  ]);
});
