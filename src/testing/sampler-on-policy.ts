import assert from 'node:assert/strict';
import type { Loss } from '../algorithms/ops.ts';
import type { GenerateRequest, Generation, Learner, Sampler } from '../engines/contracts.ts';
import { type Check, checkUnless } from './check.ts';
import { LOGPROB_TOLERANCE, pausedInFlight, type RequestMaker, type SamplerSubject } from './sampler-subject.ts';

/** −Σ log π */
const likelihood: Loss = {
  key: 'suite likelihood',
  inputs: [],
  entropy: false,
  build: (ops, { logprobs }) => ({ loss: ops.neg(ops.sum(logprobs)), metrics: {} }),
};

function answered(prompt: Int32Array, { tokens }: Pick<Generation, 'tokens'>) {
  const predict = new Uint8Array(prompt.length + tokens.length).fill(1, prompt.length);
  return { tokens: Int32Array.of(...prompt, ...tokens), predict };
}

/** The learner gives every sampled token the log-probability that it was sampled with. */
async function assertOnPolicy(
  learner: Learner,
  temperature: number,
  answers: readonly (readonly [GenerateRequest, Generation])[],
): Promise<void> {
  const sequences = answers.map(([{ tokens }, generation]) => answered(tokens, generation));
  const { logprobs } = await learner.forward({ temperature, sequences });
  for (const [i, [, generation]] of answers.entries()) {
    for (const [t, sampled] of generation.logprobs.entries()) {
      const forced = logprobs[i]![t]!;
      assert.ok(
        Math.abs(forced - sampled) < LOGPROB_TOLERANCE,
        `token ${t} of answer ${i}: ${sampled} sampled, ${forced} forced`,
      );
    }
  }
}

/** What holds between a sampler and the learner whose weights it serves. */
export function onPolicyChecks(
  make: () => Promise<SamplerSubject>,
  request: RequestMaker,
  skip: string | undefined,
): Check[] {
  const check = (name: string, run: (sampler: Sampler, learner: Learner) => Promise<void>) =>
    checkUnless([skip], name, async () => {
      const { sampler, learner } = await make();
      assert.ok(learner, 'no learner was made');
      await run(sampler, learner);
    });
  const update = async (sampler: Sampler, learner: Learner) => {
    const sequence = answered(Int32Array.of(1), { tokens: Int32Array.of(2, 1, 2, 2) });
    await learner.forwardBackward({ temperature: 1, sequences: [sequence], inputs: {} }, likelihood);
    await learner.optimizerStep({ lr: 0.02 });
    await sampler.publish(learner);
  };

  return [
    check('samples with the log-probabilities that the learner computes', async (sampler, learner) => {
      await sampler.publish(learner);
      for (const temperature of [1, 0.7, 1.5]) {
        const requests = Array.from({ length: 12 }, (_, n) => request(n, { temperature, maxTokens: 4 + n }));
        const generations = await Promise.all(requests.map(each => sampler.generate(each)));
        await assertOnPolicy(
          learner,
          temperature,
          requests.map((each, n) => [each, generations[n]!] as const),
        );
      }
    }),

    check('serves published weights, nothing of the old ones, and says their version', async (sampler, learner) => {
      await sampler.publish(learner);
      const before = await sampler.generate(request(6));
      await update(sampler, learner);
      assert.equal(sampler.version, learner.version);
      // The same prompt again, and one that continues the answer of the old weights.
      const continued = { ...request(6), tokens: Int32Array.of(...request(6).tokens, ...before.tokens) };
      const requests = [request(6), continued];
      const answers = await Promise.all(requests.map(each => sampler.generate(each)));
      for (const { versions } of answers) assert.deepEqual([...new Set(versions)], [learner.version]);
      await assertOnPolicy(
        learner,
        1,
        requests.map((each, n) => [each, answers[n]!] as const),
      );
    }),

    check(
      'marks each token with the version it was sampled at when weights change on the way',
      async (sampler, learner) => {
        await sampler.publish(learner);
        const old = sampler.version;
        const { whole, answer, seen } = await pausedInFlight(sampler, request);
        const before = seen.length;
        await update(sampler, learner);
        await sampler.resume();
        const { tokens, versions } = await answer;
        assert.deepEqual(versions, new Int32Array(tokens.length).fill(old, 0, before).fill(old + 1, before));
        // What it leaves behind must not be taken for the work of the new weights alone.
        const continued = { ...request(6), tokens: Int32Array.of(...whole.tokens, ...tokens) };
        await assertOnPolicy(learner, 1, [[continued, await sampler.generate(continued)]]);
      },
    ),
  ];
}
