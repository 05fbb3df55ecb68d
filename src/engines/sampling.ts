/** What a request may ask of sampling: the same for every engine. */

export interface SamplingParams {
  /** > 0; 0 means greedy. */
  readonly temperature: number;
  /** Nucleus: keep the smallest set of tokens whose mass reaches topP, in (0, 1]; 1 is off. */
  readonly topP: number;
  /** Keep the topK most probable tokens; 0 is off. */
  readonly topK: number;
  /** Keep tokens with at least minP times the probability of the most probable one, in [0, 1); 0 is off. */
  readonly minP: number;
  /** ≥ 1. */
  readonly maxTokens: number;
  /** Generation ends after any of these; the token is part of the result. */
  readonly stopTokens: readonly number[];
  /**
   * Generation ends with the token that completes one of these in the text of the answer, special tokens included.
   * The token is part of the result, with whatever its text says beyond the string.
   */
  readonly stopStrings: readonly string[];
  /** Also give the log-probabilities of so many most probable tokens at each place; 0 gives none. */
  readonly topLogprobs: number;
}

export const DEFAULT_SAMPLING: Omit<SamplingParams, 'maxTokens'> = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  stopTokens: [],
  stopStrings: [],
  topLogprobs: 0,
};

/** Refuses parameters that no distribution has, and a seed that is not 32-bit unsigned. */
export function checkSampling(params: SamplingParams, vocabularySize: number, seed = 0): void {
  const { temperature, topP, topK, minP, maxTokens, stopTokens, stopStrings, topLogprobs } = params;
  const check = (name: string, value: unknown, valid: boolean, expected: string) => {
    const shown = typeof value === 'number' ? value : JSON.stringify(value);
    if (!valid) throw new RangeError(`sampling: ${name} is ${shown}; expected ${expected}`);
  };
  const integer = (value: number, least: number, most: number) =>
    Number.isInteger(value) && value >= least && value <= most;
  check('temperature', temperature, temperature >= 0 && Number.isFinite(temperature), '0 (greedy) or more');
  check('top_p', topP, topP > 0 && topP <= 1, 'above 0 and at most 1 (1 is off)');
  check('top_k', topK, integer(topK, 0, Number.MAX_SAFE_INTEGER), 'an integer of 0 (off) or more');
  check('min_p', minP, minP >= 0 && minP < 1, '0 (off) or more and below 1');
  check('max tokens', maxTokens, integer(maxTokens, 1, Number.MAX_SAFE_INTEGER), 'an integer of 1 or more');
  for (const token of stopTokens) check('a stop token', token, integer(token, 0, 2 ** 31 - 1), 'a token id');
  for (const text of stopStrings) check('a stop string', text, typeof text === 'string' && text !== '', 'some text');
  check(
    'top log-probs',
    topLogprobs,
    integer(topLogprobs, 0, vocabularySize),
    `an integer from 0 (off) to the ${vocabularySize} ids of the vocabulary`,
  );
  check('the seed', seed, integer(seed, 0, 2 ** 32 - 1), 'an integer from 0 to 4294967295');
}
