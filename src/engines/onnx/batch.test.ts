import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LearnerSequence } from '../contracts.ts';
import { checkSequence, inputLength, membership, microBatches, packBatch } from './batch.ts';

const sequence: fc.Arbitrary<LearnerSequence> = fc
  .array(fc.record({ token: fc.nat(9), predict: fc.nat(1) }), { minLength: 1, maxLength: 9 })
  .map(places => ({
    tokens: Int32Array.from(places, place => place.token),
    predict: Uint8Array.from(places, (place, t) => (t === 0 ? 0 : place.predict)),
  }));

describe('microBatches', () => {
  it('covers every index once, within the budget unless a sequence alone exceeds it', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 50 })), fc.integer({ min: 1, max: 200 }), (lengths, budget) => {
        const batches = microBatches(lengths, budget);
        expect(batches.flat().sort((a, b) => a - b)).toEqual(lengths.map((_, index) => index));
        for (const batch of batches) {
          const padded = batch.length * Math.max(...batch.map(index => lengths[index]!));
          expect(batch.length === 1 || padded <= budget).toBe(true);
        }
        // No two neighbours would have fitted into one.
        for (const [i, batch] of batches.slice(1).entries()) {
          const before = batches[i]!;
          expect((before.length + 1) * lengths[before[0]!]!).toBeGreaterThan(budget);
          expect(lengths[batch[0]!]!).toBeLessThanOrEqual(lengths[before.at(-1)!]!);
        }
      }),
    );
  });
});

describe('packBatch', () => {
  it('gives each token, target and place back when it is unpacked', () => {
    fc.assert(
      fc.property(fc.array(sequence, { minLength: 1, maxLength: 5 }), sequences => {
        const { symbols, feeds, offsets } = packBatch(sequences);
        const lengths = sequences.map(inputLength);
        expect(symbols).toEqual({
          N: lengths.reduce((a, b) => a + b, 0),
          B: sequences.length,
          T: Math.max(...lengths),
          P: offsets.at(-1)!,
          S: sequences.length,
        });
        const starts = lengths.map((_, i) => lengths.slice(0, i).reduce((a, b) => a + b, 0));
        for (const [row, { tokens, predict }] of sequences.entries()) {
          const [start, length] = [starts[row]!, lengths[row]!];
          const packed = [...feeds.tokens.subarray(start, start + length)].map(Number);
          expect(packed).toEqual([...tokens.subarray(0, length)]);
          for (let t = 0; t < symbols.T; t++) {
            // Padded place (row, t) shows the packed token there, and the token shows its padded place.
            const padded = row * symbols.T + t;
            expect(feeds.real[padded]).toBe(t < length ? 1 : 0);
            if (t >= length) continue;
            expect(Number(feeds.pad[padded])).toBe(start + t);
            expect(Number(feeds.unpad[start + t])).toBe(padded);
          }
          const predicted = [...predict.keys()].filter(t => predict[t] === 1);
          const places = Array.from({ length: offsets[row + 1]! - offsets[row]! }, (_, i) => offsets[row]! + i);
          expect(places.map(p => Number(feeds.places[p]) - start + 1)).toEqual(predicted);
          expect(places.map(p => Number(feeds.targets[p]))).toEqual(predicted.map(t => tokens[t]!));
        }
      }),
    );
  });
});

it('says which position belongs to which sequence', () => {
  expect([...membership([0, 2, 2, 3])]).toEqual([1, 1, 0, 0, 0, 0, 0, 0, 1]);
});

describe('checkSequence', () => {
  const limits = { vocabSize: 10, context: 4 };
  const good = { tokens: Int32Array.of(1, 2, 3), predict: Uint8Array.of(0, 1, 0) };

  it.each<[string, Partial<LearnerSequence>, RegExp]>([
    ['no tokens', { tokens: new Int32Array(0), predict: new Uint8Array(0) }, /sequence 7 of the batch is empty/],
    ['marks of another length', { predict: Uint8Array.of(0, 1) }, /has 3 tokens but 2 prediction marks/],
    [
      'too many tokens',
      { tokens: new Int32Array(5), predict: new Uint8Array(5) },
      /has 5 tokens; the model's window is 4: shorten data.max_len/,
    ],
    ['a predicted first token', { predict: Uint8Array.of(1, 0, 0) }, /asks to predict its first token/],
    ['a mark that is none', { predict: Uint8Array.of(0, 2, 0) }, /has the prediction mark 2; a mark is 0 or 1/],
    ['a token beyond the vocabulary', { tokens: Int32Array.of(1, 10, 2) }, /token id 10 at position 1.* has 10 ids/],
    ['a negative token', { tokens: Int32Array.of(1, 2, -1) }, /token id -1 at position 2/],
    ['images', { images: [{ mediaType: 'image/png', data: new Uint8Array(1) }] }, /has images.* text only/],
  ])('refuses %s', (_, wrong, message) => {
    expect(() => checkSequence(good, 7, limits)).not.toThrow();
    expect(() => checkSequence({ ...good, ...wrong }, 7, limits)).toThrow(message);
  });
});
