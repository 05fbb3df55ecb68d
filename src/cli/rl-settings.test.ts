import { describe, expect, it } from 'vitest';
import { ESTIMATOR_NAMES } from '../algorithms/advantages/index.ts';
import { resolve } from '../config/load.ts';
import { rlOptions } from '../config/rl.ts';
import { samplingRemark, settingsOf } from './rl-settings.ts';

const REQUIRED = ['--actor.model_name_or_path', 'm', '--data.prompt_dataset', 'd', '--reward.remote_url', 'r'];
const from = (...argv: string[]) => settingsOf(resolve(rlOptions, { argv: [...REQUIRED, ...argv], cwd: '/' }).values);

describe('settingsOf', () => {
  it('is plain GRPO by default', () => {
    const settings = from();
    expect(settings).toMatchObject({ turnRows: false, selection: undefined, reference: undefined });
    expect(settings.curation).toEqual({ penalties: [], filters: [] });
    expect('critic' in settings).toBe(false);
  });

  it.each(ESTIMATOR_NAMES)('makes %s of its name alone', name => {
    const settings = from('--algo.advantage.estimator', name, '--rollout.max_new_tokens', '9');
    expect(settings.algorithm.estimator.name).toBe(name);
    expect('critic' in settings).toBe(name === 'gae');
  });

  it('reads the critic, whose schedule is that of the policy unless it has its own', () => {
    const critic = from(
      ...['--algo.advantage.estimator', 'gae', '--algo.advantage.lambd', '0.95', '--critic.adam.lr', '1e-3'],
      ...['--critic.value_clip', '0', '--critic.freezing_steps', '4', '--actor.lr_scheduler', 'linear'],
      ...['--critic.lr_warmup_ratio', '0.5'],
    ).critic;
    expect(critic).toEqual({
      learningRate: 1e-3,
      schedule: 'linear',
      warmupRatio: 0.5,
      minLrRatio: 0.1,
      valueClip: 0,
      freezingSteps: 4,
    });
  });

  describe('in int8', () => {
    const remark = (...argv: string[]) => {
      const { values } = resolve(rlOptions, { argv: [...REQUIRED, '--rollout.dtype', 'int8', ...argv], cwd: '/' });
      const { algorithm } = settingsOf(values);
      return { correction: algorithm.correction, text: samplingRemark(values, algorithm) };
    };

    it('corrects for the sampler by itself, and says so', () => {
      const { correction, text } = remark();
      expect(correction).toEqual({ type: 'tis', low: 0.5, high: 5 });
      expect(text).toContain('sampling in int8, learning in float32: tis with bounds 0.5 and 5 corrects for it');
      expect(remark('--algo.advantage.is_correction_type', 'icepop').text).toContain('icepop with bounds');
    });

    it('warns where the correction is turned off, and leaves a ratio against the sampler alone', () => {
      const off = remark('--no-algo.advantage.is_correction_enable');
      expect(off.correction).toBeUndefined();
      expect(off.text).toContain('nothing corrects for it, because algo.advantage.is_correction_enable is off');
      const behaviour = remark('--actor.ratio_against', 'behaviour');
      expect(behaviour.correction).toBeUndefined();
      expect(behaviour.text).toContain('the ratio against behaviour corrects for it');
    });

    it('is not on without being asked for, and other types are refused', () => {
      expect(from().algorithm.correction).toBeUndefined();
      const { values } = resolve(rlOptions, { argv: REQUIRED, cwd: '/' });
      expect(samplingRemark(values, settingsOf(values).algorithm)).toBeUndefined();
      expect(() => from('--rollout.dtype', 'int4')).toThrow(/rollout\.dtype is "int4"; expected one of int8, float32/);
    });
  });

  it('reads penalties, dynamic filtering and the reference, by older names too', () => {
    const settings = from(
      ...['--overlong_buffer_len', '4', '--rollout.max_new_tokens', '16', '--stop_properly_penalty_coef', '0.5'],
      ...['--dynamic_filtering', '--dynamic_filtering_reward_range', '0.1', '0.9', '--rollout.oversampling', '1.5'],
      ...[
        '--algo.kl.init_coef',
        '0.1',
        '--ref.update_steps',
        '20',
        '--ref.ema_beta',
        '0.9',
        '--train.turn_rows_enable',
      ],
    );
    expect(settings.curation!.penalties!.map(({ name }) => name)).toEqual(['overlong', 'stop_properly']);
    expect(settings.selection).toMatchObject({ oversampling: 1.5, maxOversampling: undefined });
    expect(settings.selection!.filter([0, 0.1])).toBe(false);
    expect(settings).toMatchObject({ reference: { every: 20, beta: 0.9 }, turnRows: true });
  });

  it.each([
    [['--critic.adam.lr', '1e-3'], /'group_norm' has no critic, so critic options have no effect/],
    [['--critic.save_value_network'], /has no critic/],
    [['--algo.advantage.lambd', '0.9'], /lambd is for the estimator 'gae'/],
    [['--rollout.n_samples_per_prompt', '1'], /needs rollout\.n_samples_per_prompt ≥ 2, got 1/],
    [['--ref.ema_beta', '0.9'], /set algo\.kl\.init_coef/],
    [
      ['--ref.ema_beta', '0.9', '--algo.kl.init_coef', '0.1', '--ds.lora.rank', '8'],
      /ref\.ema_beta is 0\.9, and under LoRA there is no moving average/,
    ],
    [['--rollout.oversampling', '2'], /no effect without algo\.dynamic_filtering_enable/],
    [
      ['--algo.dynamic_filtering_enable', '--rollout.oversampling', '4', '--rollout.max_oversampling', '2'],
      /rollout\.oversampling ≤ rollout\.max_oversampling, got 4 and 2/,
    ],
    [['--algo.dynamic_filtering_enable', '--algo.dynamic_filtering_range', '1', '0'], /low < high, got 1 and 0/],
    [
      ['--algo.advantage.estimator', 'remax', '--rollout.n_samples_per_prompt', '1', '--algo.dynamic_filtering_enable'],
      /dynamic filtering compares the samples of a task/,
    ],
    [['--algo.advantage.estimator', 'tree', '--train.turn_rows_enable'], /cannot be cut into one row a turn/],
    [['--algo.advantage.estimator', 'tree', '--algo.advantage.leaves', 'parts'], /they must be alternatives/],
    [['--algo.advantage.leaves', 'alternatives', '--train.turn_rows_enable'], /cannot be cut/],
    [['--reward.overlong_buffer_len', '4'], /set reward\.overlong_max_len/],
    [['--algo.advantage.estimator', 'gae', '--rollout.n_samples_per_prompt', '0'], /n_samples_per_prompt/],
    [
      ['--algo.advantage.estimator', 'gigpo', '--rollout.n_samples_per_prompt', '1'],
      /'gigpo' compares samples .* ≥ 2, got 1/,
    ],
    [
      ['--algo.advantage.is_correction_enable', '--algo.advantage.is_correction_threshold', '5', '0.5'],
      /0 ≤ low ≤ high and high > 0, got 5 and 0\.5/,
    ],
    [
      ['--algo.advantage.is_correction_enable', '--algo.advantage.is_correction_threshold', '-1', '2'],
      /0 ≤ low ≤ high and high > 0, got -1 and 2/,
    ],
    [['--reward.clip_range', '1', '-1'], /low < high, got 1 -1/],
    [['--actor.eps_clip_low_high', '-0.1', '0.2'], /lower clip range must be in \[0, 1\], got -0\.1/],
    [['--actor.eps_clip_low_high', '0.1', '-0.2'], /upper clip range must be a number ≥ 0, got -0\.2/],
    [
      ['--actor.ratio_against', 'loglinear', '--algo.advantage.is_correction_enable'],
      /corrects for the sampler already/,
    ],
  ])('refuses %j', (argv, message) => {
    expect(() => from(...argv)).toThrow(message);
  });

  it.each([
    [['--algo.advantage.estimator', 'gea'], /estimator is "gea"; expected one of gae, /],
    [['--algo.filter.void_turns', 'drop'], /expected one of .*remove/],
    [['--actor.policy_loss_type', 'gsop'], /policy_loss_type is "gsop"; expected one of gspo, /],
    [['--algo.advantage.is_correction_type', 'tsi'], /expected one of tis, /],
    [['--algo.kl.estimator', 'k4'], /expected one of k1, k2, k3/],
    [['--actor.loss_aggregation', 'sequences'], /expected one of sequence, /],
    [['--algo.advantage.time', 'turns'], /expected one of turn, /],
    [['--actor.ratio_against', 'behavior'], /expected one of behaviour, /],
    [['--algo.kl.init_coef', '-1'], />= 0/],
    [['--actor.entropy_coef', '-0.01'], />= 0/],
    [['--actor.eps_clip', '-0.2'], />= 0/],
    [['--actor.dual_clip', '0.5'], /> 1/],
    [['--algo.gigpo.step_weight', '-1'], />= 0/],
    [['--reward.overlong_penalty_factor', '-1'], />= 0/],
    [['--algo.dynamic_filtering_min_std', '-1'], />= 0/],
    [['--algo.advantage.gamma', '1.1'], /<= 1/],
    [['--rollout.n_samples_per_prompt', '-4'], /n_samples_per_prompt/],
    [['--critic.value_clip', '-1'], />= 0/],
    [['--ref.ema_beta', '1'], /< 1/],
  ])('refuses the value in %j', (argv, message) => {
    expect(() => from(...argv)).toThrow(message);
  });
});
