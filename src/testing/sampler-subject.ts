import assert from 'node:assert/strict';
import {
  DEFAULT_SAMPLING,
  type GenerateRequest,
  type Generation,
  type Learner,
  type Sampler,
  type SamplingParams,
} from '../engines/contracts.ts';

/** What the parts of the sampler suite share. */

export interface SamplerSubject {
  readonly sampler: Sampler;
  /** Of the same policy; the sampler serves its weights. */
  readonly learner?: Learner;
}

export type RequestMaker = (
  n: number,
  params?: Partial<SamplingParams>,
  rest?: Partial<GenerateRequest>,
) => GenerateRequest;

/** The n-th of a fixed list of requests: prompts of 1 to 7 tokens, of which some share their beginning. */
export function requestOf(
  vocabularySize: number,
  n: number,
  params: Partial<SamplingParams> = {},
  rest: Partial<GenerateRequest> = {},
): GenerateRequest {
  const tokens = Int32Array.from({ length: 1 + (n % 7) }, (_, i) => (3 + 17 * i + (i < 2 ? 0 : n)) % vocabularySize);
  return { tokens, params: { ...DEFAULT_SAMPLING, maxTokens: 12, ...params }, seed: n, key: `${n}`, ...rest };
}

/** Log-probabilities of one token computed twice, alone and in company: the bar of the contract. */
export const LOGPROB_TOLERANCE = 1e-4;

export function assertSameAnswer(actual: Generation, expected: Generation): void {
  assert.deepEqual(actual.tokens, expected.tokens);
  assert.equal(actual.finishReason, expected.finishReason);
  for (const [i, logprob] of expected.logprobs.entries()) {
    assert.ok(Math.abs(actual.logprobs[i]! - logprob) < LOGPROB_TOLERANCE, `${actual.logprobs[i]} is not ${logprob}`);
  }
}

/**
 * A request that has sampled at least one token and, the sampler being paused, stays as it is. A fast engine may have
 * come to its end before the pause reaches it; then the next one is tried.
 */
export async function pausedInFlight(sampler: Sampler, request: RequestMaker, signal?: AbortSignal) {
  for (let n = 0; n < 50; n++) {
    const whole = request(n, { maxTokens: sampler.contextLength - 20 });
    const seen: number[] = [];
    let ended = false;
    let answer!: Promise<Generation>;
    await new Promise<void>((resolve, reject) => {
      const onToken = (token: number) => {
        if (seen.push(token) === 1) resolve(sampler.pause({ mode: 'keep' }));
      };
      answer = sampler.generate({ ...whole, onToken, signal }).finally(() => {
        ended = true;
      });
      answer.catch(reject);
    });
    if (!ended) return { whole, answer, seen };
    await sampler.resume();
  }
  throw new Error('every request ended before it could be paused; give the sampler a longer context');
}
