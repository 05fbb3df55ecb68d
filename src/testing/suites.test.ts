import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { describe, it } from 'vitest';
import type { GenerateRequest } from '../engines/contracts.ts';
import { type BigramPolicy, bigramPolicy } from './bigram-policy.ts';
import type { Check } from './check.ts';
import { learnerSuite } from './learner-suite.ts';
import { samplerSuite } from './sampler-suite.ts';
import { scriptedSampler } from './scripted-sampler.ts';

const V = 17;

function register(checks: readonly Check[]): void {
  for (const { name, run, skip } of checks) it.skipIf(skip !== undefined)(skip ? `${name}: ${skip}` : name, run);
}

/** Ends never, and differs from seed to seed. */
function* babble({ seed }: GenerateRequest): Generator<number> {
  const random = xoroshiro128plus(seed);
  for (let i = 0; i < 16; i++) random.next();
  while (true) yield uniformInt(random, 0, V - 1);
}

describe('a scripted sampler', () => {
  const codec = { vocabularySize: V, encode: () => new Int32Array(0) };
  register(
    samplerSuite({
      make: async () => ({ sampler: scriptedSampler({ answers: babble, codec, contextLength: 64 }) }),
      vocabularySize: V,
      without: {
        learner: 'it has no weights',
        greedy: 'a script does not look at the temperature',
        truncation: 'a script has no distribution',
      },
    }),
  );
});

describe('a bigram policy', () => {
  const logits = Float64Array.from({ length: V * V }, (_, i) => 2 * Math.sin(3 * i));
  const make = async (): Promise<BigramPolicy> => bigramPolicy({ vocabularySize: V, contextLength: 64, logits });
  register(
    samplerSuite({
      make,
      vocabularySize: V,
      without: { truncation: 'it samples from the whole distribution and refuses anything else' },
    }),
  );
  register(
    learnerSuite({
      make: async () => (await make()).learner,
      vocabularySize: V,
      without: { export: 'there is no Hugging Face form of a bigram table' },
    }),
  );
});
