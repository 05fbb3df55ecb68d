import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LearnerSequence } from '../contracts.ts';
import { checkSequence, inputTokens, microBatches, packBatch } from './batch.ts';
import { packedIndex } from './rows.ts';
import { growTree } from './tree.ts';

const config = { heads: 4, kvHeads: 2, headDim: 8, hiddenSize: 32, intermediateSize: 64 };

const sequence: fc.Arbitrary<LearnerSequence> = fc
  .array(fc.record({ token: fc.nat(9), predict: fc.nat(1) }), { minLength: 1, maxLength: 9 })
  .map(places => ({
    tokens: Int32Array.from(places, place => place.token),
    predict: Uint8Array.from(places, (place, t) => (t === 0 ? 0 : place.predict)),
  }));

/** Few tokens, so that many sequences begin alike. */
const similar = fc
  .array(fc.array(fc.nat(2), { minLength: 1, maxLength: 12 }), { maxLength: 12 })
  .map(all => all.map(tokens => Int32Array.from(tokens)));

describe('microBatches', () => {
  it('covers every index once, within the budget unless a sequence alone exceeds it', () => {
    fc.assert(
      fc.property(similar, fc.integer({ min: 1, max: 40 }), fc.boolean(), (inputs, budget, share) => {
        const batches = microBatches(inputs, budget, share);
        expect(batches.flat().sort((a, b) => a - b)).toEqual(inputs.map((_, index) => index));
        for (const batch of batches) {
          const { tokens } = growTree(
            batch.map(index => inputs[index]!),
            share,
          );
          expect(batch.length === 1 || tokens.length <= budget).toBe(true);
        }
      }),
    );
  });

  it('begins with the longest, and closes a batch where the next sequence does not fit', () => {
    const inputs = [3, 9, 4, 8, 2].map((length, n) => new Int32Array(length).fill(n));
    expect(microBatches(inputs, 12, true)).toEqual([[1], [3, 2], [0, 4]]);
    expect(microBatches(inputs, 5, true)).toEqual([[1], [3], [2], [0, 4]]);
  });

  it('keeps sequences with a common prefix together, which counts once', () => {
    const group = (prompt: number) =>
      [0, 1, 2].map(answer => Int32Array.of(prompt, prompt, prompt, prompt, 7, answer, answer));
    // 4 + 1 + 3 × 2 = 11 tokens each.
    const inputs = [group(5), group(6)].flatMap(([a, b, c]) => [c!, a!, b!]);
    const together = microBatches(inputs, 21, true).map(batch => batch.toSorted());
    expect(together).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    expect(microBatches(inputs, 22, true)).toHaveLength(1);
    expect(microBatches(inputs, 21, false)).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    expect(microBatches(inputs, 10, true).map(batch => batch.length)).toEqual([2, 1, 2, 1]);
  });
});

describe('packBatch', () => {
  it('gives each token, target and place back when it is unpacked', () => {
    fc.assert(
      fc.property(fc.array(sequence, { minLength: 1, maxLength: 5 }), fc.boolean(), (sequences, share) => {
        const { symbols, feeds, offsets, rows } = packBatch(sequences, config, share);
        const inputs = sequences.map(inputTokens);
        const { depth, paths } = rows.tree;
        const index = packedIndex(rows);
        expect(symbols).toMatchObject({ P: offsets.at(-1)!, S: sequences.length });
        expect(feeds.tokens).toHaveLength((symbols.B0! + symbols.B1!) * symbols.Q!);
        if (!share) expect(depth).toHaveLength(inputs.reduce((sum, { length }) => sum + length, 0));
        for (const [s, { tokens, predict }] of sequences.entries()) {
          expect(Int32Array.from(paths[s]!, n => Number(feeds.tokens[index[n]!]))).toEqual(inputs[s]);
          const predicted = [...predict.keys()].filter(t => predict[t] === 1);
          const positions = Array.from({ length: offsets[s + 1]! - offsets[s]! }, (_, i) => offsets[s]! + i);
          expect(positions.map(p => Number(feeds.places[p]))).toEqual(predicted.map(t => index[paths[s]![t - 1]!]));
          expect(positions.map(p => Number(feeds.targets[p]))).toEqual(predicted.map(t => tokens[t]!));
        }
      }),
    );
  });
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
