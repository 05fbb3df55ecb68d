import { describe, expect, it } from 'vitest';
import { chain, group, recorder, turn } from '../../../tests/support/trajectories.ts';
import { toTrajectories } from '../../episode/trajectory.ts';
import { gigpo } from './gigpo.ts';
import { drGrpoAdvantage } from './group.ts';
import { tree } from './tree.ts';

const rounded = (rows: readonly Float32Array[]) =>
  rows.map(row => [...row].map(value => Math.round(value * 1e5) / 1e5));

describe('gigpo', () => {
  const batch = [
    chain({
      group: 'g',
      turns: [
        { tokens: 1, stateKey: 'A' },
        { tokens: 1, reward: 1, stateKey: 'B' },
      ],
    }),
    chain({
      group: 'g',
      turns: [
        { tokens: 1, stateKey: 'A' },
        { tokens: 1, stateKey: 'C' },
      ],
    }),
  ];

  it('adds to the comparison of episodes that of turns taken in the same state', () => {
    const { advantages, metrics } = gigpo({ gamma: 0.5 }).estimate({ trajectories: batch });
    expect(rounded(advantages)).toEqual([
      [0.75, 0.5],
      [-0.75, -0.5],
    ]);
    expect(metrics).toMatchObject({ step_group_size: 4 / 3, step_group_singletons: 2 / 3 });
  });

  it('divides by standard deviations on request, and weighs the steps', () => {
    const { advantages } = gigpo({ gamma: 0.5, norm: 'mean_std', epsilon: 0, omega: 2 }).estimate({
      trajectories: batch,
    });
    const half = Math.SQRT1_2;
    expect(advantages[0]![0]).toBeCloseTo(half + 2 * half, 6);
    expect(advantages[1]![1]).toBeCloseTo(-half, 6);
  });

  it('does not mix states of different groups, and takes revisits of one episode together', () => {
    const revisit = [
      chain({
        group: 'h',
        turns: [
          { tokens: 1, stateKey: 'A' },
          { tokens: 1, reward: 1, stateKey: 'A' },
        ],
      }),
      chain({ group: 'k', turns: [{ tokens: 1, stateKey: 'A' }] }),
    ];
    const { advantages } = gigpo({ gamma: 0.5 }).estimate({ trajectories: revisit });
    expect(rounded(advantages)).toEqual([[-0.25, 0.25], [0]]);
  });

  it('is the plain group baseline when no state is named', () => {
    const plain = group('g', [
      [1, 2],
      [0, 1],
      [0.5, 1],
    ]);
    expect(gigpo().estimate({ trajectories: plain }).advantages).toEqual(
      drGrpoAdvantage().estimate({ trajectories: plain }).advantages,
    );
  });

  it('takes similar states together', () => {
    const states = ['you are in the kitchen, 1 step', 'you are in the kitchen, 2 steps', 'a garden'];
    const rows = states.map((stateKey, i) => chain({ group: 'g', turns: [{ tokens: 1, reward: i, stateKey }] }));
    const exact = gigpo().estimate({ trajectories: rows });
    const similar = gigpo({ similarity: 0.9 }).estimate({ trajectories: rows });
    expect(rounded(exact.advantages)).toEqual([[-1], [0], [1]]);
    expect(rounded(similar.advantages)).toEqual([[-1.5], [0.5], [1]]);
  });

  it('can let every turn count in the episode statistics', () => {
    const uneven = [
      chain({ group: 'g', turns: [{ tokens: 1 }, { tokens: 1 }, { tokens: 1, reward: 1 }] }),
      chain({ group: 'g', turns: [{ tokens: 1 }] }),
    ];
    expect(rounded(gigpo({ statistics: 'turn' }).estimate({ trajectories: uneven }).advantages)[0]![0]).toBe(0.25);
    expect(rounded(gigpo().estimate({ trajectories: uneven }).advantages)[0]![0]).toBe(0.5);
  });

  it('refuses what makes no sense', () => {
    expect(() => gigpo({ omega: -1 })).toThrow('omega must be a number ≥ 0, got -1');
    expect(() => gigpo({ similarity: 1.5 })).toThrow('similarity must be in (0, 1], got 1.5');
    expect(() => gigpo({ time: 'token' })).toThrow('time must be counted in turns');
  });
});

describe('tree', () => {
  it('measures a branch against its siblings', () => {
    const record = recorder({ id: 'tree', group: 'g' });
    const prompt = record.feed(-1, 'prompt', Int32Array.of(1));
    const a = turn(record, prompt, { tokens: 1, environment: 1 });
    turn(record, a, { tokens: 1, reward: 1 });
    turn(record, a, { tokens: 2, reward: 0 });
    const b = turn(record, prompt, { tokens: 1, environment: 1 });
    turn(record, b, { tokens: 1, reward: 0 });
    const trajectories = toTrajectories(record.finish({ kind: 'done' }));
    // V(a) = 0.5, V(b) = 0, V(prompt) = 0.25; b's only continuation inherits from b.
    expect(rounded(tree().estimate({ trajectories }).advantages)).toEqual([
      [0.25, 0.5],
      [0.25, -0.5, -0.5],
      [-0.25, -0.25],
    ]);
  });

  it('does not favour the subtree that was expanded more', () => {
    const record = recorder({ id: 'wide', group: 'g' });
    const prompt = record.feed(-1, 'prompt', Int32Array.of(1));
    const a = turn(record, prompt, { tokens: 1, environment: 1 });
    for (const reward of [1, 1, 1, 1]) turn(record, a, { tokens: 1, reward });
    turn(record, prompt, { tokens: 1, reward: 0 });
    const { advantages } = tree().estimate({ trajectories: toTrajectories(record.finish({ kind: 'done' })) });
    // The mean of the two branches is 0.5; the mean of the five leaves would be 0.8.
    expect(rounded(advantages)).toEqual([[0.5, 0], [0.5, 0], [0.5, 0], [0.5, 0], [-0.5]]);
  });

  it('is R − mean(R) in a group of chains', () => {
    const chains = [
      chain({
        group: 'g',
        turns: [
          { tokens: 2, environment: 1 },
          { tokens: 1, reward: 1 },
        ],
      }),
      chain({ group: 'g', turns: [{ tokens: 1 }] }),
    ];
    expect(rounded(tree().estimate({ trajectories: chains }).advantages)).toEqual([[0.5, 0.5, 0.5], [-0.5]]);
  });

  it('compares leaves, so they cannot be parts', () => {
    expect(() => tree({ leaves: 'parts' })).toThrow('they must be alternatives');
  });
});
