import { describe, expect, it } from 'vitest';
import { ends, IMPROVED, learn, TASKS, type TaskName } from '../bench/learning-tasks.ts';
import { ESTIMATOR_NAMES } from '../src/algorithms/advantages/index.ts';
import { POLICY_LOSSES } from '../src/algorithms/losses/index.ts';

/** `npm run bench -- learning` runs every combination with three seeds; here each estimator and each loss has its turn. */
describe.each(Object.keys(TASKS) as TaskName[])('%s', task => {
  it.each(ESTIMATOR_NAMES.map((name, i) => [name, POLICY_LOSSES[i % POLICY_LOSSES.length]!] as const))(
    'is learned by %s with %s',
    async (estimator, loss) => {
      const { from, to } = ends(await learn({ task, estimator, loss, seed: 5 }, task === 'recall' ? 16 : 10));
      expect(to).toBeGreaterThan(from + IMPROVED);
    },
  );
});
