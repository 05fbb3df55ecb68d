import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyBatch, chain, group } from '../../../tests/support/trajectories.ts';
import type { Trajectory } from '../../episode/trajectory.ts';
import type { Estimator } from './contract.ts';
import { drGrpoAdvantage, groupNorm, leaveOneOut, optimalBaseline, reinforceBaseline } from './group.ts';

const estimators: Record<string, Estimator> = {
  group_norm: groupNorm(),
  reinforce_baseline: reinforceBaseline(),
  dr_grpo: drGrpoAdvantage(),
  rloo: leaveOneOut(),
  opo: optimalBaseline(),
};

function advantages(estimator: Estimator, trajectories: readonly Trajectory[]): number[][] {
  return estimator.estimate({ trajectories }).advantages.map(row => [...row]);
}

function expectClose(actual: readonly number[][], expected: readonly number[][]): void {
  expect(actual.map(row => row.length)).toEqual(expected.map(row => row.length));
  for (const [i, row] of expected.entries()) {
    // Float32 results near 1; shifting rewards by up to 100 costs two more digits.
    for (const [t, value] of row.entries()) expect(Math.abs(actual[i]![t]! - value)).toBeLessThan(1e-4);
  }
}

/** Adds to the reward of every episode's last step. */
function shifted(trajectories: readonly Trajectory[], by: (group: string) => number): Trajectory[] {
  return trajectories.map(trajectory => ({
    ...trajectory,
    steps: trajectory.steps.with(-1, {
      ...trajectory.steps.at(-1)!,
      reward: trajectory.steps.at(-1)!.reward + by(trajectory.group),
    }),
  }));
}

describe.each(Object.entries(estimators))('%s', (_, estimator) => {
  it('does not change when a constant is added to the rewards of a group', () => {
    fc.assert(
      fc.property(anyBatch, fc.integer({ min: -100, max: 100 }), (batch, shift) => {
        // Variances near zero amplify rounding; rewards on a grid of 1/8 add exactly.
        const grid = batch.map(trajectory => ({
          ...trajectory,
          steps: trajectory.steps.map(step => ({ ...step, reward: Math.round(step.reward * 8) / 8 })),
        }));
        const moved = shifted(grid, name => shift * (1 + name.charCodeAt(1) - 48));
        expectClose(advantages(estimator, moved), advantages(estimator, grid));
      }),
    );
  });

  it('does not depend on the order of trajectories', () => {
    fc.assert(
      fc.property(anyBatch, fc.nat(100), (batch, rotation) => {
        const at = rotation % batch.length;
        const rotated = [...batch.slice(at), ...batch.slice(0, at)].reverse();
        const result = new Map(rotated.map((trajectory, i) => [trajectory, i]));
        const permuted = advantages(estimator, rotated);
        expectClose(
          batch.map(trajectory => permuted[result.get(trajectory)!]!),
          advantages(estimator, batch),
        );
      }),
    );
  });

  it('is exactly zero where all members have the same return, whatever the other groups did', () => {
    // 0.1 has no exact mean in binary: (0.1 + 0.1 + 0.1) / 3 ≠ 0.1.
    const same = group('same', [
      [0.1, 1],
      [0.1, 4],
      [0.1, 2],
    ]);
    const other = group('other', [
      [1, 3],
      [0, 7],
    ]);
    const result = advantages(estimator, [...same, ...other]);
    expect(
      result
        .slice(0, 3)
        .flat()
        .every(value => value === 0),
    ).toBe(true);
    expect(
      result
        .slice(3)
        .flat()
        .some(value => value !== 0),
    ).toBe(true);
  });

  it('gives a group of one nothing', () => {
    expect(advantages(estimator, group('one', [[3, 2]]))).toEqual([[0, 0]]);
  });

  it('has nothing to say about nothing', () => {
    expect(estimator.estimate({ trajectories: [] })).toEqual({ advantages: [], metrics: {} });
  });

  it('gives a row for an episode without policy tokens', () => {
    const batch = [
      ...group('g', [
        [1, 2],
        [0, 1],
      ]),
      chain({ group: 'g', turns: [] }),
    ];
    expect(advantages(estimator, batch)[2]).toEqual([]);
  });
});

describe('values', () => {
  const batch = group('g', [
    [1, 1],
    [0, 2],
    [0, 1],
    [3, 4],
  ]);
  const first = (estimator: Estimator) => advantages(estimator, batch).map(row => row[0]!);
  const std = Math.sqrt(((1 - 1) ** 2 + 1 + 1 + 4) / 3);

  it.each<[string, Estimator, number[]]>([
    ['dr_grpo', drGrpoAdvantage(), [0, -1, -1, 2]],
    ['group_norm', groupNorm({ epsilon: 0 }), [0, -1 / std, -1 / std, 2 / std]],
    ['rloo', leaveOneOut(), [1 - 3 / 3, 0 - 4 / 3, 0 - 4 / 3, 3 - 1 / 3]],
    ['opo', optimalBaseline(), [1, 0, 0, 3].map(r => r - (1 * 1 + 3 * 4) / 8)],
  ])('%s', (_, estimator, expected) => {
    for (const [i, value] of first(estimator).entries()) expect(value).toBeCloseTo(expected[i]!, 6);
  });

  it('reinforce_baseline divides by the standard deviation over tokens, and centres as published on request', () => {
    const centred = [0, -1, -1, -1, 2, 2, 2, 2];
    const mean = centred.reduce((a, b) => a + b) / 8;
    const sigma = Math.sqrt(centred.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 8);
    const scaled = advantages(reinforceBaseline(), batch).flat();
    const whitened = advantages(reinforceBaseline({ whitening: { mean: true, std: true } }), batch).flat();
    for (const [i, value] of centred.entries()) {
      expect(scaled[i]).toBeCloseTo(value / sigma, 6);
      expect(whitened[i]).toBeCloseTo((value - mean) / sigma, 6);
    }
  });

  it('reports what the groups had to say', () => {
    const metrics = groupNorm().estimate({
      trajectories: [
        ...batch,
        ...group('same', [
          [1, 1],
          [1, 1],
        ]),
        ...group('one', [[5, 1]]),
      ],
    }).metrics;
    expect(metrics.group_reward_std).toBeCloseTo(std / 2, 6);
    expect(metrics.zero_variance_groups).toBeCloseTo(1 / 3, 12);
    expect(metrics.single_member_groups).toBeCloseTo(1 / 3, 12);
    expect(metrics.return).toBeCloseTo(11 / 7, 12);
  });

  it('leaves masked tokens out of the scale and in the baseline', () => {
    const keep = batch.map((_, i) => new Uint8Array([1, 2, 1, 4][i]!).fill(i === 3 ? 0 : 1));
    const { advantages: rows } = reinforceBaseline().estimate({ trajectories: batch, keep });
    const sigma = Math.sqrt((0.75 ** 2 + 3 * 0.25 ** 2) / 4);
    expect(rows[1]![0]).toBeCloseTo(-1 / sigma, 5);
  });
});

describe('rewards per turn', () => {
  const batch = [
    chain({
      group: 'g',
      turns: [
        { tokens: 1, reward: 2, environment: 3 },
        { tokens: 2, reward: 1 },
      ],
    }),
    chain({
      group: 'g',
      turns: [
        { tokens: 1, reward: 0, environment: 1 },
        { tokens: 1, reward: 3 },
      ],
    }),
    chain({ group: 'g', turns: [{ tokens: 2, reward: 1 }] }),
  ];

  it('stay where they were earned: a turn is compared with the same turn of the others', () => {
    // Returns from turn 0: 3, 3, 1. From turn 1: 1, 3 and, of the member that took one turn, its last: 1.
    const rows = advantages(drGrpoAdvantage(), batch);
    const [m0, m1] = [7 / 3, 5 / 3];
    expectClose(rows, [
      [3 - m0, 1 - m1, 1 - m1],
      [3 - m0, 3 - m1],
      [1 - m0, 1 - m0],
    ]);
  });

  it('are discounted by turns, however many tokens a turn or an answer of the environment has', () => {
    const rows = advantages(drGrpoAdvantage({ gamma: 0.5 }), batch);
    const mean = (2.5 + 1.5 + 1) / 3;
    expectClose([[rows[0]![0]!], [rows[1]![0]!], [rows[2]![0]!]], [[2.5 - mean], [1.5 - mean], [1 - mean]]);
  });

  it('take penalties off after the baseline, as reward-to-go', () => {
    const two = group('g', [
      [1, 2],
      [0, 1],
    ]);
    const { advantages: rows } = drGrpoAdvantage().estimate({
      trajectories: two,
      penalties: [Float32Array.of(0.1, 0.2), Float32Array.of(0.4)],
    });
    expectClose(
      rows.map(row => [...row]),
      [[0.5 - 0.3, 0.5 - 0.2], [-0.5 - 0.4]],
    );
  });

  it('have no baseline when discounted by tokens', () => {
    expect(() => groupNorm({ gamma: 0.9, time: 'token' })).toThrow('needs time counted in turns');
    expect(() => groupNorm({ gamma: 1.1 })).toThrow('gamma must be in [0, 1], got 1.1');
  });
});
