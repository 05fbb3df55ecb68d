import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_SAMPLING,
  type GenerateRequest,
  type Generation,
  type Learner,
  type Sampler,
} from '../engines/contracts.ts';
import { type BigramPolicy, bigramPolicy } from './bigram-policy.ts';
import { type Check, declareChecks } from './check.ts';
import { learnerSuite } from './learner-suite.ts';
import { samplerSuite } from './sampler-suite.ts';
import { scriptedSampler } from './scripted-sampler.ts';

const V = 17;

function register(checks: readonly Check[]): void {
  declareChecks(checks, it);
}

/** Ends never, and differs from seed to seed. */
function* babble({ seed }: GenerateRequest): Generator<number> {
  const random = xoroshiro128plus(seed);
  for (let i = 0; i < 16; i++) random.next();
  while (true) yield uniformInt(random, 0, V - 1);
}

describe('a scripted sampler', () => {
  const codec = { vocabularySize: V, encode: () => new Int32Array(0), decode };
  register(
    samplerSuite({
      make: async () => ({ sampler: scriptedSampler({ answers: babble, codec, contextLength: 64 }) }),
      vocabularySize: V,
      decode,
      without: {
        topLogprobs: 'a script knows the tokens that it says, no others',
        learner: 'it has no weights',
        greedy: 'a script does not look at the temperature',
        truncation: 'a script has no distribution',
      },
    }),
  );
});

const decode = (tokens: ArrayLike<number>) => Array.from(tokens, token => String.fromCharCode(65 + token)).join('');

async function bigram(): Promise<BigramPolicy> {
  const logits = Float64Array.from({ length: V * V }, (_, i) => 2 * Math.sin(3 * i));
  return bigramPolicy({ vocabularySize: V, contextLength: 64, logits, decode });
}

describe('a bigram policy', () => {
  register(
    samplerSuite({
      make: bigram,
      vocabularySize: V,
      decode,
      without: { truncation: 'it samples from the whole distribution and refuses anything else' },
    }),
  );
  register(
    learnerSuite({
      make: async () => (await bigram()).learner,
      vocabularySize: V,
      without: { export: 'there is no Hugging Face form of a bigram table' },
    }),
  );
});

/** The same, with one method wrapped. */
function changed<T extends object, K extends keyof T>(subject: T, name: K, wrap: (method: T[K]) => T[K]): T {
  const wrapped = wrap(subject[name]);
  return new Proxy(subject, { get: (target, key) => (key === name ? wrapped : Reflect.get(target, key)) });
}

/** Names of the checks that do not pass. */
async function failing(checks: readonly Check[]): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run, skip } of checks) {
    if (skip === undefined) await run().catch(() => failed.push(name));
  }
  return failed;
}

describe('samplerSuite', () => {
  type Generate = Sampler['generate'];
  const altered =
    (change: (answer: Generation) => Generation) =>
    (generate: Generate): Generate =>
    async request =>
      change(await generate(request));

  it.each<[string, (generate: Generate) => Generate, RegExp]>([
    [
      'swallows the stop token',
      altered(answer => (answer.finishReason === 'stop' ? { ...answer, tokens: answer.tokens.slice(0, -1) } : answer)),
      /stop token/,
    ],
    [
      'goes on behind a stop string',
      generate => request => generate({ ...request, params: { ...request.params, stopStrings: [] } }),
      /completes a stop string/,
    ],
    [
      'tells other tokens than the most probable ones',
      altered(answer => ({
        ...answer,
        topLogprobs: answer.topLogprobs?.map(top => ({ ...top, tokens: top.tokens.map(token => (token + 1) % V) })),
      })),
      /most probable tokens of each place/,
    ],
    ['forgets the seed', generate => request => generate({ ...request, seed: 1 }), /same seed, and others/],
    [
      'tells other log-probabilities',
      altered(answer => ({ ...answer, logprobs: answer.logprobs.map(logprob => logprob - 0.01) })),
      /that the learner computes/,
    ],
    [
      'tells an old version',
      altered(answer => ({ ...answer, versions: answer.versions.map(() => 0) })),
      /says? their version/,
    ],
    [
      'is deaf to aborts',
      generate => request => generate({ ...request, signal: undefined }),
      /aborted before it began/,
    ],
    [
      'refuses nothing',
      generate => request => generate(request).catch(() => generate({ ...request, ...harmless })),
      /make no sense/,
    ],
  ])('fails one that %s', async (_, wrap, expected) => {
    const make = async () => {
      const { sampler, learner } = await bigram();
      return { sampler: changed(sampler, 'generate', wrap), learner };
    };
    const checks = samplerSuite({ make, vocabularySize: V, decode, without: { truncation: 'not here' } });
    // What is deaf to aborts would be waited for without end.
    const ending = checks.filter(({ name }) => !/pause/.test(name));
    expect(await failing(ending)).toContainEqual(expect.stringMatching(expected));
  });
  const harmless = { tokens: Int32Array.of(1), params: { ...DEFAULT_SAMPLING, maxTokens: 1 } };
});

describe('learnerSuite', () => {
  const suite = (wrap: (learner: Learner) => Learner) =>
    learnerSuite({
      make: async () => wrap((await bigram()).learner),
      vocabularySize: V,
      without: { export: 'not here' },
    });

  it.each<[string, (learner: Learner) => Learner, RegExp]>([
    [
      'averages over a call',
      learner =>
        changed(learner, 'forwardBackward', run => (batch, loss) => {
          const advantages = batch.inputs.advantages?.map(values =>
            values.map(value => value / batch.sequences.length),
          );
          return run(advantages ? { ...batch, inputs: { advantages } } : batch, loss);
        }),
      /however a batch is split/,
    ],
    [
      'tears pairs apart',
      learner =>
        changed(
          learner,
          'forwardBackward',
          run =>
            ({ together: _, ...batch }, loss) =>
              run(batch, loss),
        ),
      /compares sequences that belong together/,
    ],
    ['never forgets a gradient', learner => changed(learner, 'zeroGrad', () => async () => undefined), /zeroGrad/],
    [
      'steps without a gradient',
      learner =>
        changed(
          learner,
          'optimizerStep',
          run => options => run(options).catch(() => ({ gradNorm: 0, lr: options.lr })),
        ),
      /update without a gradient/,
    ],
    ['does not load', learner => changed(learner, 'load', () => async () => undefined), /goes on from what it saved/],
    ['has no reference', learner => changed(learner, 'forward', run => batch => run(batch)), /keeps the reference/],
    [
      'tells entropies in bits',
      learner =>
        changed(learner, 'forward', run => async (...args) => {
          const { logprobs, entropy } = await run(...args);
          return { logprobs, entropy: entropy.map(values => values.map(value => value / Math.LN2)) };
        }),
      /of one distribution/,
    ],
  ])('fails one that %s', async (_, wrap, expected) => {
    expect(await failing(suite(wrap))).toContainEqual(expect.stringMatching(expected));
  });
});
