import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tokenloop } from '../support/process.ts';
import { smallJob } from '../support/small-job.ts';
import { lastingMetrics } from '../support/workplace.ts';

/** What algorithms need beyond GRPO, from the command line on the embedded engine; resumed runs are those never stopped. */

let cwd: string;
beforeAll(async () => {
  cwd = await smallJob();
});
const rl = (run: string, more: readonly string[]) =>
  tokenloop(['rl', '--config', 'rl.yaml', '--run.dir', run, ...more], { cwd });
const weights = (path: string) => readFileSync(join(cwd, path, 'model.safetensors'));

/** Runs, goes back to the checkpoint of step 2, and runs from there. */
async function twice(name: string, options: readonly string[]): Promise<Record<string, unknown>[]> {
  expect(await rl(name, options)).toMatchObject({ code: 0, err: '' });
  const again = `${name}-again`;
  cpSync(join(cwd, name), join(cwd, again), { recursive: true });
  for (const step of [4, 6]) rmSync(join(cwd, again, `checkpoints/step-0000000${step}`), { recursive: true });
  expect(await rl(again, [...options, '--ckpt.load_enable'])).toMatchObject({ code: 0, err: '' });
  expect(lastingMetrics(join(cwd, again))).toEqual(lastingMetrics(join(cwd, name)));
  expect(weights(`${again}/model`).equals(weights(`${name}/model`))).toBe(true);
  return lastingMetrics(join(cwd, name));
}

describe('rl', () => {
  it('trains a critic, one row a turn, against a moving reference', async () => {
    const metrics = await twice('critic', [
      ...['--algo.advantage.estimator', 'gae', '--algo.advantage.lambd', '0.9', '--critic.adam.lr', '1e-2'],
      ...[
        '--critic.freezing_steps',
        '1',
        '--critic.save_value_network',
        '--ref.update_steps',
        '2',
        '--ref.ema_beta',
        '0.5',
      ],
      ...['--train.turn_rows_enable', '--reward.stop_properly_penalty_coef', '0.5'],
    ]);
    expect(metrics.map(step => 'train/policy_loss' in step)).toEqual([false, true, true, true, true, true]);
    for (const step of metrics) {
      expect(step['train/critic_loss']).toBeGreaterThan(0);
      expect(step['train/penalty_stop_properly']).toBeLessThanOrEqual(0);
    }
    expect(existsSync(join(cwd, 'critic/checkpoints/step-00000006/critic'))).toBe(true);
    expect(weights('critic-again/model_critic').equals(weights('critic/model_critic'))).toBe(true);
  });

  it('samples greedy answers and replaces groups that teach nothing', async () => {
    const metrics = await twice('remax', [
      ...['--algo.advantage.estimator', 'remax', '--algo.dynamic_filtering_enable', '--rollout.oversampling', '2'],
      ...['--algo.dynamic_filtering_min_std', '0.01', '--algo.filter.truncated', 'mask'],
    ]);
    for (const step of metrics) expect(step['rollout/groups_waiting']).toBeGreaterThanOrEqual(0);
    expect(metrics.some(step => (step['rollout/groups_waiting'] as number) > 0)).toBe(true);
    expect(metrics[0]).toMatchObject({ 'rollout/greedy_reward_mean': expect.any(Number) });
    expect(metrics[0]!['train/masked_episodes']).toBe(metrics[0]!['train/filtered_truncated']);
  });

  it('refuses a critic that would do nothing, before anything is opened', async () => {
    const { code, err } = await rl('none', ['--critic.adam.lr', '1e-3']);
    expect(code).toBe(2);
    expect(err).toMatch(/'group_norm' has no critic, so critic options have no effect; leave them out or use 'gae'/);
    expect(existsSync(join(cwd, 'none'))).toBe(false);
  });
});
