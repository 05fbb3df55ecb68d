import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SAMPLING, type SamplingParams } from '../contracts.ts';
import { checkSampling, sampleTruncated, truncates } from './truncate.ts';

type Cut = Pick<SamplingParams, 'topP' | 'topK' | 'minP'>;

function logSoftmax(logits: readonly number[]): Float32Array {
  const highest = Math.max(...logits);
  const total = highest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
  return Float32Array.from(logits, logit => logit - total);
}

/**
 * The tokens that are kept, one cut after another as the definitions say: min-p of the most probable token, then the k
 * most probable, then the smallest set of the rest that reaches p of their mass. Ties at a cut stay together.
 */
function kept(logp: Float32Array, { topP, topK, minP }: Cut): Set<number> {
  let ids = [...logp.keys()].sort((a, b) => logp[b]! - logp[a]! || a - b);
  const tiedTo = (last: number) => ids.filter(id => logp[id]! >= logp[last]!);
  if (minP > 0) ids = ids.filter(id => logp[id]! >= logp[ids[0]!]! + Math.log(minP));
  if (topK > 0 && topK < ids.length) ids = tiedTo(ids[topK - 1]!);
  if (topP < 1) {
    const mass = ids.reduce((sum, id) => sum + Math.exp(logp[id]!), 0);
    let reached = 0;
    const last = ids.find(id => {
      reached += Math.exp(logp[id]!);
      return reached >= topP * mass;
    })!;
    ids = tiedTo(last);
  }
  return new Set(ids);
}

const cut: fc.Arbitrary<Cut> = fc.record({
  topP: fc.oneof(fc.constant(1), fc.double({ min: 0.01, max: 1, noNaN: true })),
  topK: fc.nat(8),
  minP: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.9, noNaN: true })),
});
// Multiples of a half make ties common.
const distribution = fc
  .array(
    fc.oneof(
      fc.double({ min: -4, max: 4, noNaN: true }),
      fc.integer({ min: -4, max: 4 }).map(n => n / 2),
    ),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map(logSoftmax);

describe('sampleTruncated', () => {
  it('draws from exactly the tokens that min-p, then top-k, then top-p keep', () => {
    fc.assert(
      fc.property(distribution, cut, fc.nat(2 ** 23 - 1), (logp, params, draw) => {
        const expected = kept(logp, params);
        const { token, logprob } = sampleTruncated(logp, params, draw / 2 ** 23);
        expect(expected.has(token)).toBe(true);
        const total = [...expected].reduce((sum, id) => sum + Math.exp(logp[id]!), 0);
        // Float64 arithmetic on the same float32 numbers.
        expect(logprob).toBeCloseTo(Math.log(Math.exp(logp[token]!) / total), 10);
        expect(logprob).toBeLessThanOrEqual(0);
      }),
      { numRuns: 1000 },
    );
  });

  it('gives every kept token its share of the unit interval', () => {
    fc.assert(
      fc.property(distribution, cut, (logp, params) => {
        const expected = kept(logp, params);
        const total = [...expected].reduce((sum, id) => sum + Math.exp(logp[id]!), 0);
        let start = 0;
        for (const id of [...expected].sort((a, b) => a - b)) {
          const share = Math.exp(logp[id]!) / total;
          expect(sampleTruncated(logp, params, start + share / 2).token).toBe(id);
          start += share;
        }
      }),
    );
  });

  it('falls back on the last kept token when rounding leaves nothing', () => {
    expect(sampleTruncated(logSoftmax([1, 1, -50]), { topP: 1, topK: 2, minP: 0 }, 1).token).toBe(1);
  });
});

it.each<[Partial<SamplingParams>, boolean]>([
  [{}, false],
  [{ topP: 0.9 }, true],
  [{ topK: 5 }, true],
  [{ minP: 0.1 }, true],
  // The most probable token survives every cut.
  [{ temperature: 0, topK: 5 }, false],
])('%o cuts the distribution: %s', (params, expected) => {
  expect(truncates({ ...DEFAULT_SAMPLING, maxTokens: 1, ...params })).toBe(expected);
});

describe('checkSampling', () => {
  it.each<[Partial<SamplingParams>, string]>([
    [{ temperature: -1 }, 'sampling: temperature is -1; expected 0 (greedy) or more'],
    [{ temperature: Number.NaN }, 'temperature is NaN'],
    [{ temperature: Number.POSITIVE_INFINITY }, 'temperature is Infinity'],
    [{ topP: 0 }, 'top_p is 0; expected above 0 and at most 1'],
    [{ topP: 1.1 }, 'top_p is 1.1'],
    [{ topK: -1 }, 'top_k is -1; expected an integer of 0 (off) or more'],
    [{ topK: 2.5 }, 'top_k is 2.5'],
    [{ minP: 1 }, 'min_p is 1; expected 0 (off) or more and below 1'],
    [{ minP: -0.1 }, 'min_p is -0.1'],
    [{ maxTokens: 0 }, 'max tokens is 0; expected an integer of 1 or more'],
    [{ maxTokens: 1.5 }, 'max tokens is 1.5'],
  ])('refuses %o', (params, message) => {
    expect(() => checkSampling({ ...DEFAULT_SAMPLING, maxTokens: 1 })).not.toThrow();
    expect(() => checkSampling({ ...DEFAULT_SAMPLING, maxTokens: 1, ...params })).toThrow(message);
  });
});
