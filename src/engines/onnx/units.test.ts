import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkTogether, membership, unitBatches, unitsOf } from './units.ts';

const sequences = fc.array(fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 6 }), {
  minLength: 1,
  maxLength: 12,
});

describe('unitBatches', () => {
  it('takes every sequence once, tears no unit apart, and keeps to the budget where a unit does', () => {
    fc.assert(
      fc.property(sequences, fc.integer({ min: 1, max: 3 }), fc.boolean(), (made, together, share) => {
        const inputs = made.map(tokens => Int32Array.from(tokens));
        const units = unitsOf([...inputs.keys()], together);
        const batches = unitBatches(inputs, units, 10, share);
        expect(batches.flat().sort((a, b) => a - b)).toEqual([...inputs.keys()]);
        const homes = batches.map(batch => new Set(batch.map(index => units[index])));
        for (const unit of new Set(units)) expect(homes.filter(home => home.has(unit))).toHaveLength(1);
        for (const [b, batch] of batches.entries()) {
          const tokens = batch.reduce((sum, index) => sum + inputs[index]!.length, 0);
          if (!share && homes[b]!.size > 1) expect(tokens).toBeLessThanOrEqual(10);
        }
      }),
    );
  });

  it('counts once what the sequences of a unit share', () => {
    const inputs = [1, 2, 1, 2].map(last => Int32Array.of(5, 6, 7, last));
    expect(unitBatches(inputs, [0, 0, 1, 1], 10, true)).toEqual([[0, 1, 2, 3]]);
    expect(unitBatches(inputs, [0, 0, 1, 1], 10, false)).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });
});

it('numbers units in the order in which they come, whichever of their sequences are there', () => {
  expect(unitsOf([4, 5, 1, 2, 3], 2)).toEqual([0, 0, 1, 2, 2]);
  expect(unitsOf([4, 1, 2], 1)).toEqual([0, 1, 2]);
});

it('says which position belongs to which unit', () => {
  expect([...membership([0, 2, 2, 3], [0, 1, 2])]).toEqual([1, 1, 0, 0, 0, 0, 0, 0, 1]);
  expect([...membership([0, 1, 2, 3], [0, 0, 1])]).toEqual([1, 1, 0, 0, 0, 1]);
});

it('refuses what does not divide the batch', () => {
  const batch = { temperature: 1, inputs: {}, sequences: [] };
  expect(() => checkTogether({ ...batch, together: 0 })).toThrow(/together must be a whole number ≥ 1/);
  expect(() => checkTogether({ ...batch, together: 1.5 })).toThrow(/1\.5 belong together/);
  checkTogether({ ...batch, together: 2 });
});
