import assert from 'node:assert/strict';
import type { Generation, Sampler } from '../engines/contracts.ts';
import type { Check } from './check.ts';
import { assertSameAnswer, pausedInFlight, type RequestMaker, type SamplerSubject } from './sampler-subject.ts';

/** Abort, pause, sleep: what can happen to requests on the way. */
export function interruptionChecks(make: () => Promise<SamplerSubject>, request: RequestMaker): Check[] {
  const check = (name: string, run: (sampler: Sampler) => Promise<void>): Check => ({
    name,
    run: async () => run((await make()).sampler),
  });

  return [
    check('resolves a request that was aborted before it began', async sampler => {
      const answer = await sampler.generate(request(1, {}, { signal: AbortSignal.abort() }));
      assert.deepEqual([answer.tokens.length, answer.finishReason], [0, 'abort']);
    }),

    check('resolves an aborted request with what it has, also while paused', async sampler => {
      const controller = new AbortController();
      const { answer, seen } = await pausedInFlight(sampler, request, controller.signal);
      const waiting = sampler.generate(request(3, {}, { signal: controller.signal }));
      controller.abort();
      const [{ tokens, logprobs, versions, finishReason }, none] = await Promise.all([answer, waiting]);
      assert.deepEqual([[...tokens], finishReason], [seen, 'abort']);
      assert.deepEqual([logprobs.length, versions.length], [seen.length, seen.length]);
      assert.deepEqual([none.tokens.length, none.finishReason], [0, 'abort']);
      await sampler.resume();
      assert.equal((await sampler.generate(request(3))).finishReason, 'length');
    }),

    check('aborts running requests and leaves the others alone', async sampler => {
      const expected = await sampler.generate(request(9));
      const controllers = Array.from({ length: 6 }, () => new AbortController());
      const aborted = controllers.map((controller, n) =>
        sampler.generate(request(n, { maxTokens: sampler.contextLength - 7 }, { signal: controller.signal })),
      );
      const other = sampler.generate(request(9));
      for (const controller of controllers) controller.abort();
      for (const { finishReason } of await Promise.all(aborted)) assert.match(finishReason, /abort|length/);
      assertSameAnswer(await other, expected);
    }),

    check('stands still while paused and then goes on as if nothing had been', async sampler => {
      const { whole, answer, seen } = await pausedInFlight(sampler, request);
      const before = seen.length;
      const late = sampler.generate(request(2));
      // A second pause is answered after everything that the first one could have left running.
      await sampler.pause({ mode: 'keep' });
      assert.equal(seen.length, before);
      await sampler.resume();
      const { tokens } = await answer;
      assert.deepEqual(seen, [...tokens]);
      assertSameAnswer(await late, await sampler.generate(request(2)));
      const undisturbed = await sampler.generate(whole);
      assert.deepEqual(tokens, undisturbed.tokens);
    }),

    check("ends what is in flight when paused with 'abort'", async sampler => {
      const { answer, seen } = await pausedInFlight(sampler, request);
      const others: Promise<Generation>[] = [1, 2, 3].map(n => sampler.generate(request(n)));
      // Requests made in this turn have arrived once a call made after it is answered.
      await new Promise(resolve => setImmediate(resolve));
      await sampler.pause({ mode: 'abort' });
      assert.deepEqual([...(await answer).tokens], seen);
      for (const { finishReason } of [await answer, ...(await Promise.all(others))])
        assert.equal(finishReason, 'abort');
      await sampler.resume();
      assert.equal((await sampler.generate(request(1))).finishReason, 'length');
    }),

    check('answers after sleep and wake as it did before', async sampler => {
      const before = await sampler.generate(request(6));
      await sampler.sleep();
      await sampler.wake();
      assertSameAnswer(await sampler.generate(request(6)), before);
    }),
  ];
}
