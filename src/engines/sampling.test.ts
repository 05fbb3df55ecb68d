import { describe, expect, it } from 'vitest';
import { checkSampling, DEFAULT_SAMPLING, type SamplingParams } from './sampling.ts';

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
    [{ stopTokens: [1, -1] }, 'a stop token is -1; expected a token id'],
    [{ stopStrings: ['a', ''] }, 'a stop string is ""; expected some text'],
    [{ stopStrings: [7] as never }, 'a stop string is 7'],
    [{ topLogprobs: -1 }, 'top log-probs is -1; expected an integer from 0 (off) to the 40 ids of the vocabulary'],
    [{ topLogprobs: 41 }, 'top log-probs is 41'],
    [{ topLogprobs: 2.5 }, 'top log-probs is 2.5'],
  ])('refuses %o', (params, message) => {
    expect(() => checkSampling({ ...DEFAULT_SAMPLING, maxTokens: 1 }, 40)).not.toThrow();
    expect(() => checkSampling({ ...DEFAULT_SAMPLING, maxTokens: 1, ...params }, 40)).toThrow(message);
  });

  it.each([-1, 1.5, 2 ** 32, Number.NaN])('refuses the seed %d', seed => {
    expect(() => checkSampling({ ...DEFAULT_SAMPLING, maxTokens: 1 }, 40, seed)).toThrow(
      `sampling: the seed is ${seed}; expected an integer from 0 to 4294967295`,
    );
  });
});
