import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recorded } from '../../tests/support/episodes.ts';
import { anyBatch, chain, recorder, turn } from '../../tests/support/trajectories.ts';
import { reinforce } from '../algorithms/advantages/reinforce.ts';
import { aggregate } from '../algorithms/aggregate.ts';
import { policyTokenCount, SOURCE, type Trajectory, toTrajectories } from '../episode/trajectory.ts';
import { validateTrajectory } from '../episode/validate.ts';
import { turnRows } from './turn-rows.ts';

const policyValues = (rows: readonly Trajectory[], values: readonly Float32Array[]) =>
  rows.flatMap((row, i) => [...values[i]!].map(value => `${row.episode} ${value.toFixed(5)}`)).sort();
const tokens = (rows: readonly Trajectory[]) => rows.reduce((sum, row) => sum + policyTokenCount(row), 0);

describe('turnRows', () => {
  it('gives each turn the context it was sampled in', () => {
    const whole = chain({
      turns: [
        { tokens: 2, reward: 1, environment: 3 },
        { tokens: 1, reward: 2 },
      ],
    });
    const [first, second] = turnRows([whole]) as [Trajectory, Trajectory];
    const { policy, prompt, environment } = SOURCE;
    expect([...first.sources]).toEqual([prompt, prompt, policy, policy]);
    expect([...second.sources]).toEqual([...[prompt, prompt], ...Array(5).fill(environment), policy]);
    expect(second.tokens).toEqual(whole.tokens);
    expect([first, second].map(row => row.steps.map(({ reward }) => reward))).toEqual([[1], [2]]);
    expect(second.logprobs.filter(value => !Number.isNaN(value))).toHaveLength(1);
  });

  it('keeps valid trajectories in which every sampled token is predicted once', () => {
    fc.assert(
      fc.property(recorded(), ({ episode }) => {
        const leaves = toTrajectories({ ...episode, outcome: { kind: 'done' } }).filter(
          ({ sources }) => sources[0] !== SOURCE.policy,
        );
        const rows = turnRows(leaves).filter(({ sources }) => sources.includes(SOURCE.policy));
        for (const row of rows)
          validateTrajectory({ ...row, score: 0, steps: row.steps.map(step => ({ ...step, reward: 0 })) });
        // A token stands in as many leaves as share it.
        const distinct = leaves.reduce((sum, { sources, shared }) => {
          return sum + sources.reduce((part, source, t) => part + (source === SOURCE.policy ? 1 / shared[t]! : 0), 0);
        }, 0);
        const stepped = leaves.every(({ steps, sources }) => {
          const covered = steps.reduce((sum, { start, end }) => sum + end - start, 0);
          return covered === sources.filter(source => source === SOURCE.policy).length;
        });
        if (stepped) expect(tokens(rows)).toBe(Math.round(distinct));
      }),
    );
  });

  it('changes neither credit nor weights: the rows of an episode are one attempt', () => {
    fc.assert(
      fc.property(anyBatch, trajectories => {
        const rows = turnRows(trajectories);
        const options = { gamma: 0.9, whitening: { mean: true, std: true } } as const;
        const whole = reinforce(options).estimate({ trajectories }).advantages;
        const split = reinforce(options).estimate({ trajectories: rows }).advantages;
        expect(policyValues(rows, split)).toEqual(policyValues(trajectories, whole));
        for (const aggregation of [{ mode: 'token' }, { mode: 'sequence' }, { mode: 'constant', length: 7 }] as const) {
          expect(policyValues(rows, aggregate(rows, aggregation).weights)).toEqual(
            policyValues(trajectories, aggregate(trajectories, aggregation).weights),
          );
        }
      }),
      { numRuns: 50 },
    );
  });

  it('makes one row of a turn that several leaves share', () => {
    const record = recorder();
    const shared = turn(record, record.feed(-1, 'prompt', Int32Array.of(1)), { tokens: 2, reward: 1, environment: 1 });
    turn(record, shared, { tokens: 1, reward: 2 });
    turn(record, shared, { tokens: 3, reward: 3 });
    const rows = turnRows(toTrajectories(record.finish({ kind: 'done' })));
    expect(rows.map(policyTokenCount)).toEqual([2, 1, 3]);
    expect(rows.flatMap(({ steps }) => steps.map(({ reward }) => reward))).toEqual([1, 2, 3]);
    expect(new Set(rows.flatMap(({ shared: counts }) => [...counts]))).toEqual(new Set([1]));
  });

  it('loses no reward of a turn without tokens', () => {
    const whole = chain({
      turns: [
        { tokens: 0, reward: 1, environment: 1 },
        { tokens: 2, reward: 2 },
        { tokens: 0, reward: 4 },
      ],
    });
    const rows = turnRows([whole]);
    expect(rows.map(({ steps }) => steps.map(({ reward }) => reward))).toEqual([[1, 2, 4]]);
  });
});
