import assert from 'node:assert/strict';
import type { Sampler } from '../engines/contracts.ts';
import { type Check, checkUnless } from './check.ts';
import type { RequestMaker, SamplerSubject } from './sampler-subject.ts';

/** Stop strings, taken from what the sampler says without them. `decode` gives the text of tokens, special ones too. */
export function stopStringChecks(
  make: () => Promise<SamplerSubject>,
  request: RequestMaker,
  decode: (tokens: ArrayLike<number>) => string,
  skip: string | undefined,
): Check[] {
  const check = (name: string, run: (sampler: Sampler) => Promise<void>) =>
    checkUnless([skip], name, async () => run((await make()).sampler));
  /** Number of tokens after which the text has the string. */
  const end = (tokens: Int32Array, stop: string) =>
    1 + tokens.findIndex((_, i) => decode(tokens.subarray(0, i + 1)).includes(stop));

  return [
    check('ends with the token that completes a stop string, which spans tokens', async sampler => {
      const { tokens } = await sampler.generate(request(6));
      // The end of one token and the beginning of the next.
      const stop = `${[...decode(tokens.subarray(4, 5))].at(-1)}${[...decode(tokens.subarray(5, 6))][0]}`;
      const length = end(tokens, stop);
      assert.ok(length > 1 && length <= 6, `${JSON.stringify(stop)} is complete after ${length} tokens`);
      const answer = await sampler.generate(request(6, { stopStrings: ['\u0000 never', stop] }));
      assert.deepEqual(answer.tokens, tokens.slice(0, length));
      assert.deepEqual([answer.finishReason, answer.stopString], ['stop', stop]);
      // Also when it is the last token that there was room for.
      const tight = await sampler.generate(request(6, { stopStrings: [stop], maxTokens: length }));
      assert.equal(tight.finishReason, 'stop');
      const short = await sampler.generate(request(6, { stopStrings: [stop], maxTokens: length - 1 }));
      assert.deepEqual([short.finishReason, short.stopString], ['length', undefined]);
    }),

    check('finds a stop string that began in the part of the answer that is continued', async sampler => {
      const { tokens } = await sampler.generate(request(6));
      const begun = Int32Array.of(...request(6).tokens, ...tokens.subarray(0, 4));
      const next = await sampler.generate(request(6, { maxTokens: 1 }, { tokens: begun }));
      const spanning = decode(tokens.subarray(2, 4)) + decode(next.tokens);
      const params = { maxTokens: 1, stopStrings: [spanning] };
      const continued = await sampler.generate(request(6, params, { tokens: begun, answered: 4 }));
      assert.deepEqual([continued.finishReason, continued.stopString], ['stop', spanning]);
      const unrelated = await sampler.generate(request(6, params, { tokens: begun }));
      assert.equal(unrelated.finishReason, 'length');
    }),

    check('looks for stop strings in the answer only, and for each request its own', async sampler => {
      const { tokens } = request(6);
      const inPrompt = decode(tokens);
      const whole = await sampler.generate(request(6));
      const others = ['\u0000 never', inPrompt + decode(whole.tokens.subarray(0, 1))];
      const requests = others.map(stop => request(6, { stopStrings: [stop] }));
      const answers = await Promise.all(requests.map(each => sampler.generate(each)));
      for (const answer of answers) {
        assert.deepEqual([answer.tokens, answer.finishReason], [whole.tokens, whole.finishReason]);
        assert.equal(answer.stopString, undefined);
      }
    }),
  ];
}
