import { expect, it } from 'vitest';
import type { Executor } from '../agents/contracts.ts';
import { singleTurn } from '../agents/single-turn.ts';
import { traced } from '../agents/traced.ts';
import type { Span } from '../episode/span.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { scriptedSampler } from '../testing/scripted-sampler.ts';
import { type AgentOptions, evaluatePolicy } from '../train.ts';

/** What an executor's service says of all episodes of an evaluation. */

const renderer = byteRenderer();
const reward = singleTurn({ reward: inputs => inputs.map(() => 1) });

const nothing = () => undefined;
const span: Span = { set: nothing, fail: nothing, within: (_, __, run) => run(span) };

async function evaluated(summarize: NonNullable<Executor['summarize']>, more: Partial<AgentOptions> = {}) {
  const logged: string[] = [];
  const { metrics } = await evaluatePolicy({
    policy: { sampler: scriptedSampler({ answers: () => 'yes', codec: renderer }), renderer },
    // Traced, since runs may be.
    agent: traced({ ...reward, summarize }, span),
    tasks: [{ prompt: 'a' }, { prompt: 'b' }],
    samples: 3,
    log: message => void logged.push(message),
    ...more,
  });
  return { metrics, logged };
}

it('is among the metrics of the evaluation', async () => {
  const { metrics, logged } = await evaluated(async groups => ({
    'service/groups': groups.length,
    'service/episodes': groups.flat().length,
  }));
  expect(metrics).toMatchObject({ 'eval/service/groups': 2, 'eval/service/episodes': 6, 'eval/eval/pass1': 1 });
  expect(logged).toEqual([]);
});

it('is left out, and that is said, where the service fails or does not answer', async () => {
  const failing = await evaluated(async () => {
    throw new Error('status 500');
  });
  expect(failing.metrics['eval/eval/pass1']).toBe(1);
  expect(failing.logged).toEqual([
    expect.stringMatching(/metrics that single-turn gives .* are missing: .*status 500/),
  ]);
  const hanging = await evaluated(() => new Promise(nothing), { limits: { callTimeoutMs: 30 } });
  expect(hanging.logged).toEqual([expect.stringMatching(/no answer within 30 ms/)]);
});
