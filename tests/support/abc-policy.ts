import type { Learner, PolicyEngine, Sampler } from '../../src/engines/contracts.ts';
import { type BigramPolicy, bigramPolicy } from '../../src/testing/bigram-policy.ts';
import { BYTE_SPECIAL, byteRenderer } from '../../src/testing/byte-tokenizer.ts';

const VOCABULARY = 260;

export interface AbcPolicy {
  readonly engine: PolicyEngine & { closed: number };
  readonly bigram: BigramPolicy;
}

/** A bigram policy that says a, b, c or stops with equal probability, whatever it was asked: something to train. */
export function abcPolicy(
  wrap: { readonly sampler?: (sampler: Sampler) => Sampler; readonly learner?: (learner: Learner) => Learner } = {},
): AbcPolicy {
  const logits = new Float64Array(VOCABULARY * VOCABULARY).fill(-30);
  for (let previous = 0; previous < VOCABULARY; previous++) {
    for (const next of [...Buffer.from('abc'), BYTE_SPECIAL.end]) logits[previous * VOCABULARY + next] = 0;
  }
  const bigram = bigramPolicy({ vocabularySize: VOCABULARY, logits });
  const engine = {
    sampler: wrap.sampler?.(bigram.sampler) ?? bigram.sampler,
    learner: wrap.learner?.(bigram.learner) ?? bigram.learner,
    renderer: byteRenderer(),
    closed: 0,
    async close() {
      engine.closed += 1;
    },
  };
  return { engine, bigram };
}
