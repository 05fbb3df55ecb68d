import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyBatch, chain, recorder, turn } from '../../tests/support/trajectories.ts';
import { toTrajectories } from '../episode/trajectory.ts';
import { type Aggregation, aggregate, tokenMean } from './aggregate.ts';

const short = chain({ turns: [{ tokens: 1 }] });
const long = chain({ turns: [{ tokens: 2, environment: 3 }, { tokens: 1 }] });
const sum = (rows: readonly Float32Array[]) => rows.flatMap(row => [...row]).reduce((a, b) => a + b, 0);

describe('aggregate', () => {
  it.each<[Aggregation, number, number]>([
    [{ mode: 'token' }, 1 / 4, 1 / 4],
    [{ mode: 'sequence' }, 1 / 2, 1 / 6],
    [{ mode: 'constant', length: 10 }, 1 / 20, 1 / 20],
  ])('%o', (aggregation, first, second) => {
    const { weights, share, tokens } = aggregate([short, long], aggregation);
    expect(weights).toEqual([Float32Array.of(first), new Float32Array(3).fill(second)]);
    expect(share).toEqual([Float32Array.of(1 / 4), new Float32Array(3).fill(1 / 4)]);
    expect(tokens).toBe(4);
  });

  it('counts a shared token once and a tree no more than a chain', () => {
    const record = recorder({ id: 'tree' });
    const first = turn(record, record.feed(-1, 'prompt', Int32Array.of(1)), { tokens: 2, environment: 1 });
    turn(record, first, { tokens: 1 });
    turn(record, first, { tokens: 3 });
    const tree = toTrajectories(record.finish({ kind: 'done' }));

    const byToken = aggregate([...tree, short], { mode: 'token' });
    expect(byToken.tokens).toBe(2 + 1 + 3 + 1);
    expect(byToken.weights[0]![0]).toBeCloseTo(1 / 14, 7);
    expect(byToken.weights[0]![2]).toBeCloseTo(1 / 7, 7);
    const bySequence = aggregate([...tree, short], { mode: 'sequence' });
    expect(sum(bySequence.weights.slice(0, 2))).toBeCloseTo(0.5, 6);
  });

  it('leaves out what is not kept, and episodes of which nothing is kept', () => {
    const keep = [Uint8Array.of(0), Uint8Array.of(1, 0, 1)];
    expect(aggregate([short, long], { mode: 'token' }, keep).weights).toEqual([
      Float32Array.of(0),
      Float32Array.of(0.5, 0, 0.5),
    ]);
    expect(aggregate([short, long], { mode: 'sequence' }, keep).weights[1]).toEqual(Float32Array.of(0.5, 0, 0.5));
    const nothing = aggregate([short], { mode: 'sequence' }, [Uint8Array.of(0)]);
    expect(nothing).toEqual({ weights: [Float32Array.of(0)], share: [Float32Array.of(0)], tokens: 0 });
  });

  it('is a mean: weights sum to one', () => {
    fc.assert(
      fc.property(anyBatch, trajectories => {
        // Up to 80 weights, each rounded to float32.
        expect(sum(aggregate(trajectories, { mode: 'token' }).weights)).toBeCloseTo(1, 5);
        expect(sum(aggregate(trajectories, { mode: 'sequence' }).weights)).toBeCloseTo(1, 5);
      }),
    );
  });

  it('refuses masks of the wrong length and lengths that are not', () => {
    expect(() => aggregate([short], { mode: 'token' }, [new Uint8Array(2)])).toThrow('2 values was given for 1 policy');
    expect(() => aggregate([short], { mode: 'constant', length: 0 })).toThrow('length > 0, got 0');
  });
});

it('tokenMean weighs every token of every row the same', () => {
  expect(tokenMean([1, 0, 3])).toEqual([Float32Array.of(0.25), new Float32Array(0), new Float32Array(3).fill(0.25)]);
});
