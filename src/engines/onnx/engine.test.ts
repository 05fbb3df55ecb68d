import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { hostOptions, TINY_VOCABULARY, tinyModel } from '../../../tests/support/engines.ts';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import { valueLoss } from '../../algorithms/losses/value.ts';
import type { Check } from '../../testing/check.ts';
import { learnerSuite } from '../../testing/learner-suite.ts';
import { samplerSuite } from '../../testing/sampler-suite.ts';
import { writeCharTokenizer } from '../../text/char-tokenizer.ts';
import { DEFAULT_SAMPLING, type GenerateRequest } from '../contracts.ts';
import { OnnxEngine } from './engine.ts';

/** Every thread that was started, so that a test can see that it ended, or end it. */
const threads: Worker[] = [];
vi.mock(import('node:worker_threads'), async original => {
  const module = await original();
  class Watched extends module.Worker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      threads.push(this);
    }
  }
  return { ...module, Worker: Watched };
});

const SPECIAL = ['<pad>', '<eos>', '<end>'];
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const decode = (tokens: ArrayLike<number>) => Array.from(tokens, token => [...SPECIAL, ...LETTERS][token]).join('');

let root: string;
let engine: OnnxEngine;
let initial: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-engine-'));
  const directory = tinyModel(root);
  const size = await writeCharTokenizer(directory, { alphabet: LETTERS, special: SPECIAL, eos: '<eos>', pad: '<pad>' });
  expect(size).toBe(TINY_VOCABULARY);
  engine = await OnnxEngine.start(hostOptions(directory, { initSeed: 3 }));
  initial = join(root, 'initial');
  await engine.save(initial);
});
afterAll(async () => {
  await engine.close();
  rmSync(root, { recursive: true });
});

/** The shared engine as it was at first. */
async function restored(): Promise<OnnxEngine> {
  await engine.load(initial);
  return engine;
}

function request(seed: number, rest: Partial<GenerateRequest> = {}): GenerateRequest {
  const params = { ...DEFAULT_SAMPLING, maxTokens: 8 };
  return { tokens: Int32Array.of(1, 2, 3), params, seed, key: `${seed}`, ...rest };
}

const sequence = { tokens: Int32Array.of(1, 2, 3, 4), predict: Uint8Array.of(0, 0, 1, 1) };
const batch = { temperature: 1, sequences: [sequence], inputs: { weights: [Float32Array.of(0.5, 0.5)] } };

function register(checks: readonly Check[]): void {
  for (const { name, run, skip } of checks) it.skipIf(skip !== undefined)(skip ? `${name}: ${skip}` : name, run);
}

describe('as a sampler', () => {
  register(
    samplerSuite({
      make: async () => ({ sampler: await restored(), learner: engine }),
      vocabularySize: TINY_VOCABULARY,
      decode,
    }),
  );

  it('refuses stop strings where tokens have no text, and nothing else', async () => {
    const bare = tinyModel(mkdtempSync(join(root, 'bare-')));
    const mute = await OnnxEngine.start(hostOptions(bare, { initSeed: 3 }));
    try {
      const stopping = request(1, { params: { ...DEFAULT_SAMPLING, maxTokens: 8, stopStrings: ['x'] } });
      const [refused, other] = await Promise.allSettled([mute.generate(stopping), mute.generate(request(2))]);
      expect(String((refused as PromiseRejectedResult).reason)).toMatch(/stop strings need .*bare-.*tokenizer\.json/);
      expect(other).toMatchObject({ status: 'fulfilled' });
      // The prompt's three tokens; nothing of it was cached.
      expect(await mute.statistics()).toEqual({ promptTokens: 3, cachedTokens: 0, evictions: 0 });
    } finally {
      await mute.close();
    }
  });
});

describe('as a deterministic sampler', () => {
  let isolated: OnnxEngine;
  beforeAll(async () => {
    isolated = await OnnxEngine.start(
      hostOptions(join(root, 'tiny'), { initSeed: 3, sampler: { deterministic: true, threads: 2 } }),
    );
  });
  afterAll(() => isolated.close());

  register(
    samplerSuite({
      make: async () => {
        await isolated.load(initial);
        return { sampler: isolated, learner: isolated };
      },
      vocabularySize: TINY_VOCABULARY,
      decode,
    }),
  );
});

describe('as a learner', () => {
  register(
    learnerSuite({
      make: restored,
      vocabularySize: TINY_VOCABULARY,
      open: directory => OnnxEngine.start(hostOptions(directory)),
      gradient: learner => (learner as OnnxEngine).gradient(),
    }),
  );
});

describe('as a learner with micro-batches of few tokens', () => {
  let small: OnnxEngine;
  beforeAll(async () => {
    small = await OnnxEngine.start(hostOptions(join(root, 'tiny'), { initSeed: 3, learner: { maxTokens: 9 } }));
  });
  afterAll(() => small.close());

  register(
    learnerSuite({
      make: async () => {
        await small.load(initial);
        return small;
      },
      vocabularySize: TINY_VOCABULARY,
      gradient: learner => (learner as OnnxEngine).gradient(),
      without: { export: 'it is checked above' },
    }),
  );
});

describe('a pair of engines', () => {
  it('has the same weights after the one publishes to the other', async () => {
    const learner = await restored();
    const sampler = await OnnxEngine.start(hostOptions(join(root, 'tiny'), { initSeed: 4 }));
    try {
      await learner.forwardBackward(batch, likelihoodLoss());
      await learner.optimizerStep({ lr: 0.1 });
      expect(await sampler.weights()).not.toEqual(await learner.weights());
      await sampler.publish(learner);
      expect(await sampler.weights()).toEqual(await learner.weights());
      expect(sampler.version).toBe(1);
      expect((await sampler.generate(request(1))).versions).toEqual(new Int32Array(8).fill(1));
    } finally {
      await sampler.close();
    }
  });

  it('continues in another engine what was saved, bit for bit', async () => {
    const first = await restored();
    await first.forwardBackward(batch, likelihoodLoss());
    await first.optimizerStep({ lr: 0.01 });
    const directory = join(root, 'state');
    await first.save(directory);
    const second = await OnnxEngine.start(hostOptions(join(root, 'tiny'), { initSeed: 99 }));
    try {
      await second.load(directory);
      for (const each of [first, second]) {
        await each.forwardBackward(batch, likelihoodLoss());
        await each.optimizerStep({ lr: 0.01 });
      }
      expect(await second.weights()).toEqual(await first.weights());
      expect(second.version).toBe(2);
    } finally {
      await second.close();
    }
  });

  it('computes the same bits in another run, with one thread and with two', async () => {
    const results = [];
    for (const count of [1, 2, 2]) {
      const options = { sampler: { threads: count }, learner: { threads: count } };
      const each = await OnnxEngine.start(hostOptions(goldenModel('grouped-tied'), options));
      const rollout = () => Promise.all(Array.from({ length: 32 }, (_, seed) => each.generate(request(seed))));
      const answers = await rollout();
      const forward = await each.forward(batch);
      const losses = await each.forwardBackward(batch, likelihoodLoss());
      const gradient = await each.gradient();
      await each.optimizerStep({ lr: 0.01 });
      const after = await rollout();
      results.push({ answers, forward, losses, gradient, after, weights: await each.weights() });
      await each.close();
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
    expect(results[0]!.after).not.toEqual(results[0]!.answers);
  });
});

describe('what cannot be', () => {
  it('refuses images, and a loss of a value head', async () => {
    await restored();
    const images = [{ mediaType: 'image/png', data: new Uint8Array(1) }];
    await expect(engine.generate(request(1, { images }))).rejects.toThrow(/reads text only/);
    await expect(engine.forward({ ...batch, sequences: [{ ...sequence, images }] })).rejects.toThrow(/reads text only/);
    const values = { returns: [Float32Array.of(1, 1)], share: batch.inputs.weights, old_values: batch.inputs.weights };
    const inputs = { ...batch.inputs, ...values };
    await expect(engine.forwardBackward({ ...batch, inputs }, valueLoss())).rejects.toThrow(/has none/);
  });

  it('refuses a loss that cannot be built', async () => {
    await restored();
    const broken = {
      ...likelihoodLoss(),
      build: () => {
        throw new Error('no such loss');
      },
    };
    await expect(engine.forwardBackward(batch, broken)).rejects.toThrow('no such loss');
  });

  it('refuses weights of another model, and the state of one', async () => {
    await restored();
    await expect(engine.setWeights(new Float32Array(3), 1)).rejects.toThrow(/got 3 weights for a model of/);
    const other = await OnnxEngine.start(hostOptions(goldenModel('mistral')));
    const directory = join(root, 'other');
    await other.save(directory);
    await other.close();
    const before = await engine.weights();
    await expect(engine.load(directory)).rejects.toThrow(/other parameters/);
    expect(await engine.weights()).toEqual(before);
  });

  it('rejects answers of weights that are not finite, and works again with good ones', async () => {
    const good = await (await restored()).weights();
    const expected = await engine.generate(request(1));
    await engine.setWeights(good.with(0, Number.NaN).fill(Number.NaN, 100, 200), 7);
    const answers = await Promise.allSettled([1, 2, 3].map(seed => engine.generate(request(seed))));
    for (const answer of answers) {
      expect(answer).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringMatching(/log-probability NaN at version 7: its weights are not finite/) },
      });
    }
    await engine.setWeights(good, 0);
    expect(await engine.generate(request(1))).toEqual(expected);
  });
});

describe('the thread', () => {
  const mine: OnnxEngine[] = [];
  const start = async () => {
    const started = await OnnxEngine.start(hostOptions(join(root, 'tiny'), { initSeed: 3 }));
    mine.push(started);
    return started;
  };
  afterEach(async () => {
    await Promise.all(mine.splice(0).map(each => each.close()));
  });
  const whole = { params: { ...DEFAULT_SAMPLING, maxTokens: 500 } };

  it('takes everything with it that waits for it when it dies', async () => {
    const doomed = await start();
    await doomed.pause({ mode: 'keep' });
    // Requests are held by the pause; the call comes when the thread has been told to end. None can be answered before.
    const held = [doomed.generate(request(1)), doomed.generate(request(2))];
    const ended = threads.at(-1)!.terminate();
    const waiting = [...held, doomed.weights()];
    await ended;
    for (const each of await Promise.allSettled(waiting)) {
      expect(each).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringMatching(/engine thread ended with code 1/) },
      });
    }
    await expect(doomed.generate(request(1))).rejects.toThrow(/engine thread ended/);
    await expect(doomed.forward(batch)).rejects.toThrow(/engine thread ended/);
    await expect(doomed.wake()).rejects.toThrow(/engine thread ended/);
  });

  it('never hears of a request that is aborted in the turn in which it is made', async () => {
    const controller = new AbortController();
    const answer = engine.generate(request(1, { ...whole, signal: controller.signal }));
    const other = engine.generate(request(2));
    controller.abort();
    expect(await answer).toMatchObject({ tokens: new Int32Array(0), finishReason: 'abort' });
    expect((await other).tokens).toHaveLength(8);
  });

  it('is closed while it works, and rejects what it was working on', async () => {
    const closing = await start();
    const answers = Promise.allSettled([1, 2, 3].map(seed => closing.generate(request(seed, whole))));
    const computing = closing.forwardBackward(batch, likelihoodLoss());
    await Promise.all([closing.close(), closing.close()]);
    for (const each of await answers) {
      expect(each).toMatchObject({ status: 'rejected', reason: { message: 'the engine is closed' } });
    }
    // Calls are carried out in order: what was asked before is answered.
    expect((await computing).loss).toBeGreaterThan(0);
    await expect(closing.generate(request(1))).rejects.toThrow('the engine is closed');
    await closing.close();
  });

  const refused: [string, (directory: string) => void, RegExp][] = [
    [
      'a checkpoint cut short',
      directory => truncateSync(join(directory, 'model.safetensors'), 900),
      /model\.safetensors/,
    ],
    [
      'a checkpoint without a tensor',
      directory => editConfig(directory, { num_hidden_layers: 3 }),
      /model\.layers\.2\..* missing/,
    ],
    [
      'an unknown architecture',
      directory => editConfig(directory, { architectures: ['GPT2LMHeadModel'] }),
      /GPT2LMHeadModel.*LlamaForCausalLM/,
    ],
    ['no configuration', directory => rmSync(join(directory, 'config.json')), /config\.json: cannot be read/],
  ];
  it.each(refused)('does not start with %s, and does not linger', async (_, damage, message) => {
    const directory = mkdtempSync(join(root, 'damaged-'));
    cpSync(goldenModel('mistral'), directory, { recursive: true });
    damage(directory);
    await expect(OnnxEngine.start(hostOptions(directory))).rejects.toThrow(message);
    expect(threads.at(-1)!.threadId).toBe(-1);
  });
});

function editConfig(directory: string, fields: object): void {
  const path = join(directory, 'config.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...fields }));
}
