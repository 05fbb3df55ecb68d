import { describe, expect, it } from 'vitest';
import { chain, group } from '../../../tests/support/trajectories.ts';
import { gae } from './gae.ts';
import { drGrpoAdvantage } from './group.ts';
import { reinforce } from './reinforce.ts';
import { remax } from './remax.ts';

const none = { mean: false, std: false };
const multiTurn = chain({
  turns: [
    { tokens: 2, reward: 0.5, environment: 40 },
    { tokens: 2, reward: 1 },
  ],
});
const values = [Float32Array.of(0.1, 0.2, 0.3, 0.4)];

function closeTo(actual: ArrayLike<number>, expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(actual[i]).toBeCloseTo(value, 6);
}

describe('gae', () => {
  it('counts policy tokens: an answer of the environment neither discounts nor cuts the bootstrap', () => {
    const [gamma, lambda] = [0.9, 0.8];
    const { advantages, returns } = gae({ gamma, lambda, time: 'token', whitening: none }).estimate({
      trajectories: [multiTurn],
      values,
    });
    const d3 = 1 - 0.4;
    const d2 = gamma * 0.4 - 0.3;
    const d1 = 0.5 + gamma * 0.3 - 0.2;
    const d0 = gamma * 0.2 - 0.1;
    const a2 = d2 + gamma * lambda * d3;
    const a1 = d1 + gamma * lambda * a2;
    const a0 = d0 + gamma * lambda * a1;
    closeTo(advantages[0]!, [a0, a1, a2, d3]);
    closeTo(returns![0]!, [a0 + 0.1, a1 + 0.2, a2 + 0.3, 1]);
  });

  it('counts turns by default: nothing is discounted inside an answer', () => {
    const [gamma, lambda] = [0.9, 0.8];
    const { advantages } = gae({ gamma, lambda, whitening: none }).estimate({ trajectories: [multiTurn], values });
    const [a2, a3] = [1 - 0.3, 1 - 0.4];
    const after = gamma * 0.3 + gamma * lambda * a2;
    closeTo(advantages[0]!, [0.5 + after - 0.1 + gamma * 0, 0.5 + after - 0.2, a2, a3]);
  });

  it('with γ = λ = 1 is the reward to come minus the value, in either time', () => {
    for (const time of ['turn', 'token'] as const) {
      const { advantages } = gae({ time, whitening: none }).estimate({ trajectories: [multiTurn], values });
      closeTo(advantages[0]!, [1.5 - 0.1, 1.5 - 0.2, 1 - 0.3, 1 - 0.4]);
    }
  });

  // Two turns of three and two tokens; the first leaves 0.25 to its last token, the second nothing.
  const perToken = chain({
    turns: [
      { tokens: 3, reward: 1, tokenRewards: [0.5, -0.25, 0.5], environment: 40 },
      { tokens: 2, reward: 3, tokenRewards: [1, 2] },
    ],
  });
  const baseline = [0.1, 0.2, 0.3, 0.4, 0.5];
  it.each<['turn' | 'token', number, readonly number[]]>([
    ['turn', 1, [4, 3.5, 3.75, 3, 2]],
    ['token', 1, [4, 3.5, 3.75, 3, 2]],
    // γ acts behind the third token only: 0.75 + 0.9·3.
    ['turn', 0.9, [3.7, 3.2, 3.45, 3, 2]],
    // 1 + 0.9·2, 0.75 + 0.9·2.8, −0.25 + 0.9·3.27, 0.5 + 0.9·2.693
    ['token', 0.9, [2.9237, 2.693, 3.27, 2.8, 2]],
  ])('takes rewards of tokens where they stand: time in %ss, γ = %d', (time, gamma, returns) => {
    const options = { time, gamma, whitening: none };
    const given = { trajectories: [perToken], values: [Float32Array.from(baseline)] };
    const output = gae({ ...options, lambda: 1 }).estimate(given);
    closeTo(output.returns![0]!, returns);
    closeTo(
      output.advantages[0]!,
      returns.map((value, t) => value - baseline[t]!),
    );
    closeTo(reinforce(options).estimate(given).advantages[0]!, returns);
    // The KL penalty of a token is taken off its own reward.
    const penalties = [Float32Array.of(0, 0, 0, 0, 0.5)];
    const less = returns.map((value, t) => value - 0.5 * (time === 'turn' ? (t < 3 ? gamma : 1) : gamma ** (4 - t)));
    closeTo(gae({ ...options, lambda: 1 }).estimate({ ...given, penalties }).returns![0]!, less);
    closeTo(reinforce(options).estimate({ ...given, penalties }).advantages[0]!, less);
  });

  it('cuts credit of rewards of tokens by λ: with λ = 0 a token sees its own and the next value', () => {
    const { advantages } = gae({ lambda: 0, gamma: 0.9, time: 'token', whitening: none }).estimate({
      trajectories: [perToken],
      values: [Float32Array.from(baseline)],
    });
    closeTo(advantages[0]!, [
      0.5 + 0.9 * 0.2 - 0.1,
      -0.25 + 0.9 * 0.3 - 0.2,
      0.75 + 0.9 * 0.4 - 0.3,
      1 + 0.9 * 0.5 - 0.4,
      2 - 0.5,
    ]);
  });

  it('is compared by its sum where a group is', () => {
    const member = (tokenRewards?: readonly number[]) =>
      chain({ group: 'same', turns: [{ tokens: 2, reward: 3, ...(tokenRewards && { tokenRewards }) }] });
    const other = chain({ group: 'same', turns: [{ tokens: 2, reward: 1 }] });
    const estimate = (trajectory: ReturnType<typeof chain>) =>
      drGrpoAdvantage().estimate({ trajectories: [trajectory, other] }).advantages;
    expect(estimate(member([1, 2]))).toEqual(estimate(member()));
    expect(estimate(member([1, 2]))[0]).toEqual(Float32Array.of(1, 1));
  });

  it('is whitened over the batch', () => {
    const { advantages } = gae().estimate({ trajectories: [multiTurn], values });
    const mean = advantages[0]!.reduce((a, b) => a + b) / 4;
    const variance = advantages[0]!.reduce((sum, a) => sum + (a - mean) ** 2, 0) / 4;
    expect(mean).toBeCloseTo(0, 6);
    expect(variance).toBeCloseTo(1, 5);
  });

  it('asks for its critic and refuses values that make no sense', () => {
    expect(() => gae().estimate({ trajectories: [multiTurn] })).toThrow('gae needs the values of a critic');
    expect(() => gae({ lambda: 2 })).toThrow('lambda must be in [0, 1], got 2');
  });
});

describe('reinforce', () => {
  it('is the discounted reward to come, less the penalties to come', () => {
    const { advantages } = reinforce({ gamma: 0.5, time: 'token', whitening: none }).estimate({
      trajectories: [multiTurn],
      penalties: [Float32Array.of(0, 0.1, 0, 0)],
    });
    const g2 = 0.5 * 1;
    const g1 = 0.5 - 0.1 + 0.5 * g2;
    closeTo(advantages[0]!, [0.5 * g1, g1, g2, 1]);
  });
});

describe('remax', () => {
  const estimator = remax();

  it('subtracts the return of the greedy answer', () => {
    const { advantages } = estimator.estimate({
      trajectories: [multiTurn, ...group('h', [[2, 1]])],
      greedyReturns: new Map([
        ['g', 1],
        ['h', 3],
      ]),
    });
    closeTo(advantages[0]!, [0.5, 0.5, 0, 0]);
    closeTo(advantages[1]!, [-1]);
  });

  it('names the group whose greedy answer is missing', () => {
    expect(() => estimator.estimate({ trajectories: [multiTurn] })).toThrow("greedy return of group 'g'");
  });
});
