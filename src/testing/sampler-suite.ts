import assert from 'node:assert/strict';
import type { GenerateRequest, Sampler, SamplingParams } from '../engines/contracts.ts';
import { type Check, checkUnless } from './check.ts';
import { interruptionChecks } from './sampler-interruptions.ts';
import { onPolicyChecks } from './sampler-on-policy.ts';
import { stopStringChecks } from './sampler-stop-strings.ts';
import { assertSameAnswer, LOGPROB_TOLERANCE, requestOf, type SamplerSubject } from './sampler-subject.ts';

export type { SamplerSubject } from './sampler-subject.ts';

export interface SamplerSuiteOptions {
  /**
   * Asked for once by each check, and may give the same one again: checks leave it awake and without requests. Answers
   * must go on until something ends them, and their tokens must vary. Who makes it closes it.
   */
  readonly make: () => Promise<SamplerSubject>;
  readonly vocabularySize: number;
  /** Text of tokens, special ones included, for the checks of stop strings. */
  readonly decode?: (tokens: ArrayLike<number>) => string;
  /** What the implementation cannot do, with the reason. */
  readonly without?: Readonly<Partial<Record<SamplerFeature, string>>>;
}

/**
 * `learner`: there is one beside it; `greedy`: temperature 0; `truncation`: top-p, top-k and min-p; `stopStrings`, which
 * need `decode`; `topLogprobs`.
 */
export type SamplerFeature = 'learner' | 'greedy' | 'truncation' | 'stopStrings' | 'topLogprobs';

/** What every Sampler must keep. */
export function samplerSuite(options: SamplerSuiteOptions): Check[] {
  const { make, vocabularySize, decode, without = {} } = options;
  const noStopStrings = without.stopStrings ?? (decode ? undefined : 'no text is known for its tokens');
  const request = (n: number, params?: Partial<SamplingParams>, rest?: Partial<GenerateRequest>) =>
    requestOf(vocabularySize, n, params, rest);
  const check = (name: string, run: (sampler: Sampler) => Promise<void>, needs: readonly SamplerFeature[] = []) =>
    checkUnless(
      needs.map(feature => without[feature]),
      name,
      async () => run((await make()).sampler),
    );

  return [
    check('gives as many ids as asked for, each with a log-probability and the version', async sampler => {
      for (let n = 0; n < 8; n++) {
        const { tokens, logprobs, versions, finishReason } = await sampler.generate(request(n, { maxTokens: 1 + n }));
        assert.deepEqual([tokens.length, logprobs.length, versions.length], [1 + n, 1 + n, 1 + n]);
        assert.equal(finishReason, 'length');
        for (const token of tokens) assert.ok(token >= 0 && token < vocabularySize, `token ${token}`);
        for (const logprob of logprobs) assert.ok(Number.isFinite(logprob) && logprob <= 0, `log-prob ${logprob}`);
        for (const version of versions) assert.equal(version, sampler.version);
      }
    }),

    check('gives the same tokens for the same seed, and others for others', async sampler => {
      const first = await Promise.all([0, 1, 2, 3].map(seed => sampler.generate(request(5, {}, { seed }))));
      const again = await Promise.all([3, 2, 1, 0].map(seed => sampler.generate(request(5, {}, { seed }))));
      for (const [i, answer] of again.reverse().entries()) assertSameAnswer(answer, first[i]!);
      assert.ok(new Set(first.map(({ tokens }) => String(tokens))).size > 1, 'every seed gave the same tokens');
    }),

    check(
      'takes the same tokens whatever the seed when the temperature is 0',
      async sampler => {
        const greedy = (seed: number) => sampler.generate(request(5, { temperature: 0 }, { seed }));
        const [one, other] = await Promise.all([greedy(1), greedy(2)]);
        assertSameAnswer(other, one);
      },
      ['greedy'],
    ),

    check('ends after the first stop token, which it gives', async sampler => {
      const { tokens } = await sampler.generate(request(6));
      const stopTokens = [tokens[5]!, tokens[8]!];
      const length = 1 + tokens.findIndex(token => stopTokens.includes(token));
      const answer = await sampler.generate(request(6, { stopTokens }));
      assert.deepEqual(answer.tokens, tokens.slice(0, length));
      assert.equal(answer.finishReason, 'stop');
      // Also when it is the last token that there was room for.
      const tight = await sampler.generate(request(6, { stopTokens, maxTokens: length }));
      assert.equal(tight.finishReason, 'stop');
    }),

    check('ends where the context ends', async sampler => {
      for (const room of [1, 3]) {
        const tokens = new Int32Array(sampler.contextLength - room).fill(1);
        const answer = await sampler.generate({ ...request(1, { maxTokens: 100 }), tokens });
        assert.deepEqual([answer.tokens.length, answer.finishReason], [room, 'length']);
      }
    }),

    check('hands each token on as it is sampled', async sampler => {
      const seen: number[] = [];
      const onToken = (token: number) => seen.push(token);
      const { tokens } = await sampler.generate(request(4, {}, { onToken }));
      assert.deepEqual(seen, [...tokens]);
    }),

    check('ends a request whose listener throws, and no other', async sampler => {
      const onToken = () => {
        throw new Error('listener broke');
      };
      const other = sampler.generate(request(3));
      await assert.rejects(sampler.generate(request(4, {}, { onToken })), /listener broke/);
      assert.equal((await other).tokens.length, 12);
    }),

    check('answers many requests at once as it answers each alone', async sampler => {
      const requests = Array.from({ length: 40 }, (_, n) =>
        request(n, { maxTokens: 1 + (n % 9), temperature: n % 2 === 0 ? 1 : 0.7 }),
      );
      const together = await Promise.all(requests.map(each => sampler.generate(each)));
      for (const [n, each] of requests.entries()) assertSameAnswer(await sampler.generate(each), together[n]!);
    }),

    check('does not depend on the order in which requests of one turn are made', async sampler => {
      const numbers = Array.from({ length: 12 }, (_, n) => n);
      const generate = (n: number) => sampler.generate(request(n, {}, { key: `${10 + n}` }));
      // What earlier requests have left in caches would differ between the two.
      await sampler.sleep();
      await sampler.wake();
      const ordered = await Promise.all(numbers.map(generate));
      await sampler.sleep();
      await sampler.wake();
      const reversed = await Promise.all(numbers.toReversed().map(generate));
      assert.deepEqual(reversed.reverse(), ordered);
    }),

    check('refuses requests that make no sense, naming the value, and goes on', async sampler => {
      const { contextLength } = sampler;
      const refused: [Partial<SamplingParams>, Partial<GenerateRequest>, RegExp][] = [
        [{ temperature: -1 }, {}, /temperature.* -1/],
        [{ temperature: Number.NaN }, {}, /temperature.* NaN/],
        [{ topP: 0 }, {}, /top_?p.* 0/i],
        [{ topK: -1 }, {}, /top_?k.* -1/i],
        [{ minP: 1 }, {}, /min_?p.* 1/i],
        [{ maxTokens: 0 }, {}, /max.?tokens.* 0/i],
        [{ stopStrings: [''] }, {}, /stop.?string.* ""/i],
        [{ topLogprobs: -1 }, {}, /top.?log-?probs.* -1/i],
        [{ topLogprobs: vocabularySize + 1 }, {}, new RegExp(`top.?log-?probs.* ${vocabularySize + 1}`, 'i')],
        [{}, { seed: -1 }, /seed.* -1/],
        [{}, { tokens: new Int32Array(0) }, /at least one token/],
        [{}, { tokens: Int32Array.of(1, vocabularySize) }, new RegExp(`token.* ${vocabularySize}`)],
        [{}, { tokens: Int32Array.of(-1) }, /token.* -1/],
        [{}, { tokens: new Int32Array(contextLength) }, new RegExp(`${contextLength} tokens.* ${contextLength}`)],
      ];
      const good = sampler.generate(request(2));
      for (const [params, rest, message] of refused) {
        await assert.rejects(sampler.generate(request(2, params, rest)), message);
      }
      assertSameAnswer(await sampler.generate(request(2)), await good);
    }),

    check(
      'draws only from what top-k, top-p and min-p leave',
      async sampler => {
        const greedy = await sampler.generate(request(6, { temperature: 0 }));
        for (const cut of [{ topK: 1 }, { topP: 1e-6 }, { minP: 0.999_999 }]) {
          const { tokens, logprobs } = await sampler.generate(request(6, cut));
          assert.deepEqual(tokens, greedy.tokens);
          // One token is left, and it has the whole mass.
          for (const logprob of logprobs) assert.ok(Math.abs(logprob) < LOGPROB_TOLERANCE, `log-prob ${logprob}`);
        }
      },
      ['truncation', 'greedy'],
    ),

    check(
      'gives the most probable tokens of each place, best first, and the sampled one with the same log-prob',
      async sampler => {
        for (const temperature of [1, 0.7]) {
          const params = { temperature, topLogprobs: 3 };
          const all = await sampler.generate(request(6, { ...params, topLogprobs: vocabularySize }));
          const { tokens, logprobs, topLogprobs = [] } = await sampler.generate(request(6, params));
          assert.deepEqual([all.tokens, topLogprobs.length], [tokens, tokens.length]);
          for (const [t, top] of topLogprobs.entries()) {
            assert.deepEqual([top.tokens.length, top.logprobs.length], [3, 3]);
            assert.ok(top.logprobs[0]! >= top.logprobs[1]! && top.logprobs[1]! >= top.logprobs[2]!, 'not in order');
            const every = all.topLogprobs![t]!;
            assert.deepEqual(every.tokens.subarray(0, 3), top.tokens);
            const mass = every.logprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0);
            assert.ok(Math.abs(mass - 1) < LOGPROB_TOLERANCE, `the probabilities sum to ${mass}`);
            const sampled = every.logprobs[every.tokens.indexOf(tokens[t]!)]!;
            assert.ok(Math.abs(sampled - logprobs[t]!) < LOGPROB_TOLERANCE, `${sampled} is not ${logprobs[t]}`);
          }
        }
        const none = await sampler.generate(request(6));
        assert.equal(none.topLogprobs, undefined);
      },
      ['topLogprobs'],
    ),

    check(
      'gives no token that is cut among the most probable ones',
      async sampler => {
        const { tokens, topLogprobs = [] } = await sampler.generate(request(6, { topK: 2, topLogprobs: 5 }));
        for (const [t, top] of topLogprobs.entries()) {
          assert.ok(top.tokens.length <= 2 && top.tokens.includes(tokens[t]!), `[${top.tokens}] for ${tokens[t]}`);
          const mass = top.logprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0);
          assert.ok(Math.abs(mass - 1) < LOGPROB_TOLERANCE, `the probabilities sum to ${mass}`);
        }
      },
      ['topLogprobs', 'truncation'],
    ),

    ...stopStringChecks(make, request, decode ?? (() => ''), noStopStrings),
    ...interruptionChecks(make, request),
    ...onPolicyChecks(make, request, without.learner),
  ];
}
