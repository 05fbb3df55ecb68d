import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chain } from '../../tests/support/trajectories.ts';
import { type AlgorithmValues, algorithmFromOptions, algorithmOptions } from './options.ts';

const schema = z.object(
  Object.fromEntries(Object.entries(algorithmOptions).map(([name, option]) => [name, option.schema])),
);
const values = (given: Record<string, unknown> = {}) => schema.parse(given) as AlgorithmValues;
const from = (given: Record<string, unknown> = {}, context = {}) => algorithmFromOptions(values(given), context);

describe('algorithmFromOptions', () => {
  it('is GRPO without a reference, a critic or a correction by default', () => {
    const algorithm = from();
    expect(algorithm).toMatchObject({ name: 'group_norm', aggregation: { mode: 'token' }, kl: undefined });
    expect(algorithm.needs).toEqual({ proximal: true, reference: false, critic: false });
    expect(algorithm.loss.key).toBe('ppo(0.2,0.2)');
  });

  it('reads every option', () => {
    const algorithm = from({
      'algo.advantage.estimator': 'reinforce',
      'algo.advantage.gamma': 0.9,
      'algo.advantage.time': 'token',
      'algo.advantage.no_std_norm': true,
      'algo.advantage.mean_norm': false,
      'algo.advantage.is_correction_enable': true,
      'algo.advantage.is_correction_type': 'icepop',
      'algo.advantage.is_correction_threshold': [0.1, 3],
      'algo.kl.init_coef': 0.1,
      'algo.kl.target': 0.5,
      'algo.kl.horizon': 100,
      'algo.kl.estimator': 'k2',
      'algo.kl.use_loss': true,
      'actor.eps_clip_low_high': [0.1, 0.3],
      'actor.dual_clip': 4,
      'actor.entropy_coef': 0.01,
      'actor.loss_aggregation': 'constant',
      'actor.loss_length': 64,
      'reward.clip_range': [-1, 1],
    });
    expect(algorithm).toMatchObject({
      name: 'reinforce',
      aggregation: { mode: 'constant', length: 64 },
      kl: { coefficient: 0.1, target: 0.5, horizon: 100, estimator: 'k2', placement: 'loss' },
      correction: { type: 'icepop', low: 0.1, high: 3 },
      rewardClip: [-1, 1],
    });
    expect(algorithm.loss.key).toBe('ppo(0.1,0.3,dual=4)+kl=k2+entropy=0.01+correction');
  });

  it.each([
    [undefined, { type: 'tis', low: 0.5, high: 5 }],
    ['m2po', { type: 'm2po', low: 0, high: 0.04 }],
    ['geometric-reject', { type: 'geometric-reject', low: 0.99, high: 1.01 }],
  ])('gives the correction %s its bounds', (type, expected) => {
    const given = type === undefined ? {} : { 'algo.advantage.is_correction_type': type };
    expect(from({ 'algo.advantage.is_correction_enable': true, ...given }).correction).toEqual(expected);
  });

  it('gives each loss and estimator the aggregation that belongs to it', () => {
    expect(from({ 'actor.policy_loss_type': 'gspo' }).aggregation).toEqual({ mode: 'sequence' });
    expect(from({ 'algo.advantage.estimator': 'dr_grpo' }, { maxNewTokens: 32 }).aggregation).toEqual({
      mode: 'constant',
      length: 32,
    });
    expect(() => from({ 'algo.advantage.estimator': 'dr_grpo' })).toThrow('set actor.loss_length');
  });

  it('passes the options of gigpo to it and to nobody else', () => {
    const options = { 'algo.gigpo.step_weight': 0.5, 'algo.gigpo.norm': 'mean_std', 'algo.gigpo.similarity': 0.9 };
    const algorithm = from({ 'algo.advantage.estimator': 'gigpo', 'algo.advantage.gamma': 0.5, ...options });
    const rows = [1, 0].map(reward => chain({ turns: [{ tokens: 1, reward, stateKey: 'A' }] }));
    const { advantages } = algorithm.estimator.estimate({ trajectories: rows });
    // (1 − 0.5) / √0.5 from the episodes, and half as much again from the state that both were in.
    expect(advantages[0]![0]).toBeCloseTo(1.5 * Math.SQRT1_2, 5);
    expect(() => from(options)).toThrow("algo.gigpo.* are for the estimator 'gigpo'");
  });

  it('refuses options that would have no effect', () => {
    expect(() => from({ 'algo.advantage.no_std_norm': true })).toThrow("'group_norm' is not normalised over the batch");
    expect(() => from({ 'algo.advantage.is_correction_type': 'tis' })).toThrow('without is_correction_enable');
    expect(() => from({ 'actor.eps_clip': 0.1, 'actor.eps_clip_low_high': [0.1, 0.2] })).toThrow('not both');
    expect(() => from({ 'actor.loss_length': 5 })).toThrow("the aggregation is 'token'");
    expect(() => from({ 'actor.policy_loss_type': 'reinforce', 'actor.eps_clip': 0.1 })).toThrow('has no clip range');
  });

  it('lists what there is, the nearest first', () => {
    expect(() => values({ 'algo.advantage.estimator': 'gruop_norm' })).toThrow(
      "unknown advantage estimator 'gruop_norm'; there are group_norm,",
    );
    expect(() => values({ 'actor.policy_loss_type': 'ppa' })).toThrow("unknown policy loss 'ppa'; there are ppo,");
  });
});
