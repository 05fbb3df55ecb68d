import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/nn/checkpoint/directory.ts';
import { tokenloop } from '../support/process.ts';
import { EPISODES_PER_STEP, smallJob } from '../support/small-job.ts';
import { lastingMetrics } from '../support/workplace.ts';

let cwd: string;
beforeAll(async () => {
  cwd = await smallJob();
});

it('a loss that is not a number stops the run, which keeps its weights and can be continued', async () => {
  // Rewards are not divided by their deviation, so that one beyond float32 reaches the loss.
  const plain = ['--algo.advantage.estimator', 'reinforce_baseline', '--algo.advantage.no_std_norm'];
  const argv = (run: string, ...more: string[]) => ['rl', '--config', 'rl.yaml', ...plain, '--run.dir', run, ...more];
  const env = { HUGE_FROM: String(3 * EPISODES_PER_STEP + 1) };
  const { code, err } = await tokenloop(argv('stopped'), { cwd, env });
  expect(code).toBe(1);
  expect(err).toMatch(/^tokenloop: training stopped at step 4: .*(NaN|Infinity)[^\n]*\n$/);
  expect(err).toMatch(/The last good weights are in .*last-good; the newest checkpoint is .*step-00000002\n$/);
  const { weights } = openCheckpoint(join(cwd, 'stopped/checkpoints/last-good'));
  expect(weights.every(Number.isFinite)).toBe(true);

  expect(await tokenloop(argv('stopped', '--ckpt.load_enable'), { cwd })).toMatchObject({ code: 0, err: '' });
  expect(await tokenloop(argv('whole'), { cwd })).toMatchObject({ code: 0, err: '' });
  expect(lastingMetrics(join(cwd, 'stopped'))).toEqual(lastingMetrics(join(cwd, 'whole')));
});
