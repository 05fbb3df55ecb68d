import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SAMPLING, type SamplingParams } from '../contracts.ts';
import { draw, EVERYTHING, topLogprobs, truncate, truncates } from './truncate.ts';

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

describe('a truncated distribution', () => {
  it('draws from exactly the tokens that min-p, then top-k, then top-p keep', () => {
    fc.assert(
      fc.property(distribution, cut, fc.nat(2 ** 23 - 1), (logp, params, place) => {
        const expected = kept(logp, params);
        const { token, logprob } = draw(logp, truncate(logp, params), place / 2 ** 23);
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
          expect(draw(logp, truncate(logp, params), start + share / 2).token).toBe(id);
          start += share;
        }
      }),
    );
  });

  it('falls back on the last kept token when rounding leaves nothing', () => {
    const logp = logSoftmax([1, 1, -50]);
    expect(draw(logp, truncate(logp, { topP: 1, topK: 2, minP: 0 }), 1).token).toBe(1);
  });

  it('is what the warpers of Transformers leave, with the same most probable tokens', async () => {
    const url = new URL('../../../tests/goldens/sampling.json', import.meta.url);
    const cases: Golden[] = JSON.parse(await readFile(url, 'utf8')).truncation;
    expect(cases.length).toBeGreaterThan(20);
    for (const { logits, temperature, logprobs, top, ...given } of cases) {
      const logp = logSoftmax(logits.map(logit => logit / temperature));
      const params = { minP: given.min_p, topK: given.top_k, topP: given.top_p };
      const kept = truncate(logp, params);
      for (const [id, expected] of logprobs.entries()) {
        expect([id, logp[id]! >= kept.cut]).toEqual([id, expected !== null]);
        // Log-probabilities in float32, and the golden's six digits.
        if (expected !== null) expect(logp[id]! - Math.log(kept.total)).toBeCloseTo(expected, 5);
      }
      const found = topLogprobs(logp, 5, kept);
      expect([...found.tokens]).toEqual(top);
      for (const [i, id] of top.entries()) expect(found.logprobs[i]).toBeCloseTo(logprobs[id]!, 5);
    }
  });

  it('keeps nothing back of one that is no distribution, and ends', () => {
    const logp = new Float32Array(5).fill(Number.NaN);
    expect(draw(logp, truncate(logp, { topP: 0.5, topK: 2, minP: 0.1 }), 0.5).logprob).toBeNaN();
  });
});

interface Golden {
  readonly logits: readonly number[];
  readonly temperature: number;
  readonly min_p: number;
  readonly top_k: number;
  readonly top_p: number;
  readonly logprobs: readonly (number | null)[];
  readonly top: readonly number[];
}

describe('the most probable tokens', () => {
  it('are given best first, the lower id before its equals, and all where there are fewer', () => {
    const logp = logSoftmax([1, 3, 2, 3, -70]);
    const { tokens, logprobs } = topLogprobs(logp, 4, EVERYTHING);
    expect([...tokens]).toEqual([1, 3, 2, 0]);
    expect([...logprobs]).toEqual([logp[1], logp[3], logp[2], logp[0]]);
    expect([...topLogprobs(logp, 5, EVERYTHING).tokens]).toEqual([1, 3, 2, 0, 4]);
    expect([...topLogprobs(logp, 5, truncate(logp, { topP: 1, topK: 2, minP: 0 })).tokens]).toEqual([1, 3]);
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
