import { describe, expect, it } from 'vitest';
import { chain, group } from '../../tests/support/trajectories.ts';
import { groupNorm } from './advantages/group.ts';
import { checkGroupSize, computeAdvantages, createAlgorithm, lossInputs } from './algorithm.ts';
import { objective } from './losses/index.ts';
import { evaluate } from './numeric.ts';
import { cispo, drGrpo, grpo, gspo, ppo, reinforceBaseline, reinforcePlusPlus, rloo } from './recipes.ts';

const trajectories = [
  chain({
    group: 'g',
    turns: [
      { tokens: 2, reward: 1, environment: 2, logprobs: [-1, -2] },
      { tokens: 1, logprobs: [-3] },
    ],
  }),
  ...group('g', [[0, 2]]),
];
const proximal = [Float32Array.of(-1.5, -2, -3), Float32Array.of(-1, -1)];
const reference = [Float32Array.of(-1, -2, -2), Float32Array.of(-1, -3)];

describe('an algorithm', () => {
  it.each([grpo(), drGrpo({ length: 8 }), rloo(), reinforceBaseline(), reinforcePlusPlus(), gspo(), cispo()])(
    '$name goes from rewards to a gradient that raises the better episode',
    algorithm => {
      const { advantages } = computeAdvantages(algorithm, { trajectories });
      const { inputs } = lossInputs(algorithm, { trajectories, advantages, proximal });
      expect(Object.keys(inputs).sort()).toEqual([...algorithm.loss.inputs].sort());
      const flat = (rows: readonly Float32Array[]) => rows.flatMap(row => [...row]);
      const { gradient } = evaluate(algorithm.loss, {
        sequences: [3, 2],
        logprobs: flat(proximal),
        inputs: Object.fromEntries(Object.entries(inputs).map(([name, rows]) => [name, flat(rows)])),
      });
      expect(gradient.logprobs[0]).toBeLessThan(0);
      expect(gradient.logprobs[3]).toBeGreaterThan(0);
    },
  );

  it('takes the KL off the reward, by the coefficient of now', () => {
    const algorithm = rloo({ kl: { coefficient: 0.1 } });
    expect(algorithm.needs).toEqual({ proximal: true, reference: true, critic: false });
    expect(algorithm.loss.inputs).not.toContain('reference');
    const { advantages, metrics } = computeAdvantages(algorithm, { trajectories, proximal, reference, beta: 0.2 });
    expect([...advantages[0]!].map(a => Math.round(a * 1e6) / 1e6)).toEqual([1.3, 1.2, 0.2]);
    expect([...advantages[1]!].map(a => Math.round(a * 1e6) / 1e6)).toEqual([-1.4, -1.4]);
    expect(metrics.kl).toBeCloseTo((-0.5 - 1 + 2) / 5, 6);
  });

  it('puts the KL into the loss on request', () => {
    const algorithm = grpo({ kl: { coefficient: 0.1, placement: 'loss' } });
    expect(algorithm.kl).toMatchObject({ estimator: 'k3', placement: 'loss' });
    const { advantages } = computeAdvantages(algorithm, { trajectories });
    const { inputs } = lossInputs(algorithm, { trajectories, advantages, proximal, reference, beta: 0.5 });
    expect(inputs.reference).toBe(reference);
    expect(inputs.beta).toEqual([new Float32Array(3).fill(0.5), new Float32Array(2).fill(0.5)]);
  });

  it('corrects for the sampler', () => {
    const algorithm = grpo({ correction: { type: 'tis', low: 0.8, high: 5 } });
    const { advantages } = computeAdvantages(algorithm, { trajectories });
    const { inputs, metrics } = lossInputs(algorithm, { trajectories, advantages, proximal });
    expect(inputs.correction).toEqual([Float32Array.of(0.8, 1, 1), Float32Array.of(1, 1)]);
    expect(metrics.correction_mean).toBeCloseTo(0.96, 6);
  });

  it('can take the ratio against the sampler, and then needs no forward pass', () => {
    const algorithm = grpo({ ratioAgainst: 'behaviour' });
    expect(algorithm.needs.proximal).toBe(false);
    const { advantages } = computeAdvantages(algorithm, { trajectories });
    expect(lossInputs(algorithm, { trajectories, advantages }).inputs.old).toEqual([
      Float32Array.of(-1, -2, -3),
      Float32Array.of(-1, -1),
    ]);
  });

  it('can approximate the proximal policy by the versions of the tokens', () => {
    const algorithm = grpo({ ratioAgainst: 'loglinear', clip: 0.2 });
    expect(algorithm.needs.proximal).toBe(false);
    const { advantages } = computeAdvantages(algorithm, { trajectories });
    expect(() => lossInputs(algorithm, { trajectories, advantages })).toThrow('needs the version of the learner');
    const aged = trajectories.map(trajectory => ({
      ...trajectory,
      versions: trajectory.versions.map(v => (v < 0 ? v : 2)),
    }));
    const fresh = lossInputs(algorithm, { trajectories: aged, advantages, version: 2 }).inputs.alpha!;
    expect(fresh).toEqual([new Float32Array(3), new Float32Array(2)]);
    const stale = lossInputs(algorithm, { trajectories: aged, advantages, version: 6 }).inputs.alpha!;
    expect(stale[0]).toEqual(new Float32Array(3).fill(0.75));

    // π is 0.4 nats above π_b: log π_prox is 0.3 above it, so ρ = e^0.1, and the behaviour weight is e^0.3.
    const { loss, gradient } = evaluate(algorithm.loss, {
      sequences: [1],
      logprobs: [-1],
      inputs: { advantages: [2], old: [-1.4], weights: [1], share: [1], alpha: [0.75] },
    });
    expect(loss).toBeCloseTo(-2 * Math.exp(0.4), 12);
    expect(gradient.logprobs[0]).toBeCloseTo(-2 * Math.exp(0.4), 12);
  });

  it('clips rewards before they are compared', () => {
    const { metrics } = computeAdvantages(rloo({ rewardClip: [-0.5, 0.5] }), { trajectories });
    expect(metrics.return).toBe(0.25);
  });

  it('names log-probs that were not given', () => {
    const algorithm = grpo({ kl: { coefficient: 0.1 } });
    expect(() => computeAdvantages(algorithm, { trajectories, proximal })).toThrow(
      'grpo needs the reference log-probs',
    );
  });
});

describe('combinations that make no sense', () => {
  it.each<[string, () => unknown, string]>([
    [
      'a correction of a ratio that corrects already',
      () => grpo({ ratioAgainst: 'behaviour', correction: { type: 'tis', low: 0.5, high: 5 } }),
      "'tis' would do it twice",
    ],
    ['k1 as a loss', () => grpo({ kl: { coefficient: 0.1, placement: 'loss', estimator: 'k1' } }), 'use k2 or k3'],
    ['a target for a coefficient of 0', () => grpo({ kl: { coefficient: 0, target: 1 } }), 'start above 0'],
    ['a negative coefficient', () => grpo({ kl: { coefficient: -1 } }), 'must be a number ≥ 0, got -1'],
    ['a reward range upside down', () => grpo({ rewardClip: [1, 0] }), 'low < high, got 1 0'],
    ['a constant length of 0', () => drGrpo({ length: 0 }), 'length > 0, got 0'],
    ['thresholds out of order', () => grpo({ correction: { type: 'tis', low: 2, high: 1 } }), 'got 2 and 1'],
  ])('%s', (_, make, message) => {
    expect(make).toThrow(message);
  });

  it('a group of one for an estimator that compares', () => {
    expect(() => checkGroupSize(grpo(), 1)).toThrow('needs rollout.n_samples_per_prompt ≥ 2, got 1');
    expect(() => checkGroupSize(reinforcePlusPlus(), 1)).not.toThrow();
  });
});

it('ppo says that it needs a critic', () => {
  expect(ppo().needs.critic).toBe(true);
  expect(createAlgorithm({ name: 'x', estimator: groupNorm(), objective: objective('sapo') }).needs.critic).toBe(false);
});
