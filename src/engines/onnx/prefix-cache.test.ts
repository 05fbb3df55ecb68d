import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CachedSequence } from './cache.ts';
import { PrefixCache } from './prefix-cache.ts';

/** 4 bytes a token: what is cached for a sequence are its tokens. */
const sequenceOf = (tokens: readonly number[]): CachedSequence => ({
  data: Float32Array.from(tokens),
  length: tokens.length,
});
const ints = (tokens: readonly number[]) => Int32Array.from(tokens);

function startsWith(tokens: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((token, i) => tokens[i] === token);
}

/** What is stored, in order of last use, kept the slow way. */
class Reference {
  entries: (readonly number[])[] = [];
  readonly #budget: number;

  constructor(budget: number) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.entries.reduce((sum, entry) => sum + 4 * entry.length, 0);
  }

  longest(tokens: readonly number[], limit: number): number {
    const shared = (entry: readonly number[]) => {
      let length = 0;
      while (length < Math.min(limit, tokens.length) && entry[length] === tokens[length]) length += 1;
      return length;
    };
    return Math.max(0, ...this.entries.map(shared));
  }

  touch(entry: readonly number[]): void {
    this.entries = [...this.entries.filter(other => other !== entry), entry];
  }

  store(tokens: readonly number[]): void {
    if (4 * tokens.length > this.#budget) return;
    this.entries = [...this.entries.filter(entry => !startsWith(tokens, entry)), tokens];
    while (this.bytes > this.#budget) this.entries.shift();
  }
}

const tokens = fc.array(fc.nat(2), { minLength: 1, maxLength: 8 });
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('store' as const), tokens }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('longest' as const), tokens, limit: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const), tokens }) },
);

describe('PrefixCache', () => {
  it('finds the longest prefix of what it holds, within its budget, like a list would', () => {
    fc.assert(
      fc.property(fc.nat(120), fc.array(operation, { maxLength: 60 }), (budget, operations) => {
        const cache = new PrefixCache(budget);
        const reference = new Reference(budget);
        /** Looks up, checks the answer, and repeats the use in the reference. */
        const look = (wanted: readonly number[], limit: number) => {
          const found = cache.longest(ints(wanted), limit);
          expect(found?.length ?? 0).toBe(reference.longest(wanted, limit));
          if (found === undefined) return;
          const entry = [...found.sequence.data];
          expect(entry.slice(0, found.length)).toEqual(wanted.slice(0, found.length));
          reference.touch(reference.entries.find(other => String(other) === String(entry))!);
        };
        for (const step of operations) {
          if (step.kind === 'clear') {
            cache.clear();
            reference.entries = [];
          } else if (step.kind === 'longest') {
            look(step.tokens, step.limit);
          } else {
            const contained = reference.longest(step.tokens, step.tokens.length) === step.tokens.length;
            look(step.tokens, step.tokens.length);
            let extracted = 0;
            cache.store(ints(step.tokens), () => {
              extracted += 1;
              return sequenceOf(step.tokens);
            });
            // Nothing is copied for what an entry contains, or when nothing is kept.
            expect(extracted).toBe(contained || budget === 0 ? 0 : 1);
            if (!contained) reference.store(step.tokens);
          }
          expect(cache.bytes).toBe(reference.bytes);
          expect(cache.bytes).toBeLessThanOrEqual(budget);
          expect(cache.size).toBe(reference.entries.length);
        }
        // All that the list holds is found, without being disturbed by being looked for.
        for (const entry of [...reference.entries]) {
          const found = cache.longest(ints(entry), entry.length);
          expect(found?.length).toBe(entry.length);
          expect([...found!.sequence.data.subarray(0, entry.length)]).toEqual(entry);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('forgets the least recently used first', () => {
    const cache = new PrefixCache(24);
    cache.store(ints([1, 1, 1]), () => sequenceOf([1, 1, 1]));
    cache.store(ints([2, 2, 2]), () => sequenceOf([2, 2, 2]));
    cache.longest(ints([1, 1, 9]), 3);
    cache.store(ints([3, 3, 3]), () => sequenceOf([3, 3, 3]));
    const lengths = [1, 2, 3].map(token => cache.longest(ints([token, token, token]), 3)?.length);
    expect(lengths).toEqual([3, undefined, 3]);
  });
});
