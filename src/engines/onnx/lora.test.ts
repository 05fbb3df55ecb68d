import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostOptions, TINY_VOCABULARY, tinyModel } from '../../../tests/support/engines.ts';
import { loraGolden } from '../../../tests/support/goldens.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import { valueLoss } from '../../algorithms/losses/value.ts';
import { openCheckpoint } from '../../nn/checkpoint/directory.ts';
import type { Check } from '../../testing/check.ts';
import { learnerSuite } from '../../testing/learner-suite.ts';
import { samplerSuite } from '../../testing/sampler-suite.ts';
import { DEFAULT_SAMPLING } from '../contracts.ts';
import { OnnxEngine } from './engine.ts';
import { mergeAdapter } from './export.ts';
import { Model } from './model.ts';
import type { HostOptions } from './protocol.ts';

const LORA = { rank: 3, alpha: 12, targetModules: 'all-linear', seed: 1 } as const;
/** Of log-probabilities of merged and unmerged weights, and of cached and whole sequences: float32 in another order. */
const TOLERANCE = 1e-5;

let root: string;
let engine: OnnxEngine;
const started: OnnxEngine[] = [];
async function start(fields: Partial<HostOptions> = {}): Promise<OnnxEngine> {
  const one = await OnnxEngine.start({ ...hostOptions(join(root, 'tiny'), { initSeed: 3 }), lora: LORA, ...fields });
  started.push(one);
  return one;
}
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-lora-'));
  tinyModel(root);
  engine = await start();
  await engine.save(join(root, 'initial'));
});
afterAll(async () => {
  await Promise.all(started.map(one => one.close()));
  rmSync(root, { recursive: true });
});

async function restored(): Promise<OnnxEngine> {
  await engine.load(join(root, 'initial'));
  return engine;
}

const sequence = { tokens: Int32Array.of(1, 2, 3, 4, 9, 17), predict: Uint8Array.of(0, 0, 1, 1, 1, 1) };
const batch = { temperature: 1, sequences: [sequence], inputs: { weights: [new Float32Array(4).fill(0.25)] } };

async function train(one: OnnxEngine, steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) {
    await one.forwardBackward(batch, likelihoodLoss());
    await one.optimizerStep({ lr: 0.05 });
  }
}

function expectClose(actual: readonly Float32Array[], expected: readonly Float32Array[]): void {
  expect(actual.map(({ length }) => length)).toEqual(expected.map(({ length }) => length));
  for (const [i, values] of actual.entries()) {
    for (const [t, value] of values.entries()) expect(Math.abs(value - expected[i]![t]!)).toBeLessThan(TOLERANCE);
  }
}

function register(checks: readonly Check[]): void {
  for (const { name, run, skip } of checks) it.skipIf(skip !== undefined)(skip ? `${name}: ${skip}` : name, run);
}

describe('an engine with an adapter', () => {
  register(
    samplerSuite({
      make: async () => ({ sampler: await restored(), learner: engine }),
      vocabularySize: TINY_VOCABULARY,
    }),
  );
  register(
    learnerSuite({
      make: restored,
      vocabularySize: TINY_VOCABULARY,
      gradient: learner => (learner as OnnxEngine).gradient(),
      without: {
        export: 'merging rounds; it is checked below',
        average: 'the mean of two adapters is none of the same rank',
      },
    }),
  );

  it('is at first its base, exactly, and so is its reference', async () => {
    const base = await OnnxEngine.start(hostOptions(join(root, 'tiny'), { initSeed: 3 }));
    started.push(base);
    const expected = await base.forward(batch);
    const one = await restored();
    expect(await one.forward(batch)).toEqual(expected);
    await train(one, 3);
    expect(await one.forward(batch, { weights: 'reference' })).toEqual(expected);
    expect(await one.forward(batch)).not.toEqual(expected);
  });

  it('samples from the policy that its learner trains', async () => {
    const one = await restored();
    await train(one, 3);
    const params = { ...DEFAULT_SAMPLING, maxTokens: 12 };
    const prompt = [1, 2, 3];
    const answers = await Promise.all(
      [1, 2, 3].map(seed => one.generate({ tokens: Int32Array.from(prompt), params, seed, key: `${seed}` })),
    );
    const sequences = answers.map(({ tokens }) => ({
      tokens: Int32Array.from([...prompt, ...tokens]),
      predict: Uint8Array.from([...prompt.map(() => 0), ...tokens].fill(1, prompt.length)),
    }));
    const { logprobs } = await one.forward({ temperature: 1, sequences });
    expectClose(
      logprobs,
      answers.map(answer => answer.logprobs),
    );
  });

  it('keeps weights, gradient and moments of the adapter alone', async () => {
    const one = await restored();
    await one.forwardBackward(batch, likelihoodLoss());
    const names = Object.keys(await one.gradient());
    expect(names).toHaveLength(2 * 11);
    expect(names.every(name => name.includes('.lora_'))).toBe(true);
    const parameters = (await one.weights()).length;
    // Two layers of rank 3: q, k, v, o of 16 → 16, 8, 8, 16; gate, up and down of 16 ↔ 24.
    expect(parameters).toBe(2 * 3 * (4 * 16 + 16 + 8 + 8 + 16 + 3 * (16 + 24)));
    const state = readFileSync(join(root, 'initial', 'state.safetensors'));
    expect(state.length).toBeLessThan(3 * 4 * parameters + 1000);
  });

  it('refuses a reference that would be a moving average', async () => {
    await expect((await restored()).updateReference({ beta: 0.5 })).rejects.toThrow(/cannot keep a share of 0\.5/);
  });
});

describe('what it saves and writes', () => {
  it('goes on in another engine, bit for bit', async () => {
    const one = await restored();
    await train(one, 2);
    await one.save(join(root, 'state'));
    const other = await start({ lora: { ...LORA, seed: 99 } });
    await other.load(join(root, 'state'));
    for (const each of [one, other]) await train(each, 2);
    expect(await other.weights()).toEqual(await one.weights());
    expect(other.version).toBe(4);
  });

  it.each([
    ['rank', { lora: { ...LORA, rank: 4 } }, /other parameters/],
    ['set of modules', { lora: { ...LORA, targetModules: ['q_proj'] } }, /other parameters/],
    ['alpha', { lora: { ...LORA, alpha: 3 } }, /has the alpha 12, and now it is to be 3/],
    ['base', { initSeed: 4 }, /adapter of another base/],
  ])('is refused by another %s', async (_, fields, message) => {
    await (await restored()).save(join(root, 'state'));
    await expect((await start(fields)).load(join(root, 'state'))).rejects.toThrow(message);
  });

  it('is a merged checkpoint with the adapter in it, and both are the model', async () => {
    const one = await restored();
    await train(one, 3);
    const { logprobs } = await one.forward(batch);
    const directory = join(root, 'written');
    await one.export(directory);
    expect(readdirSync(directory).toSorted()).toEqual(['adapter', 'config.json', 'model.safetensors']);
    const merged = await OnnxEngine.start(hostOptions(directory));
    started.push(merged);
    expectClose((await merged.forward(batch)).logprobs, logprobs);
    const adapted = await start({ lora: { directory: join(directory, 'adapter') } });
    expect((await adapted.forward(batch)).logprobs).toEqual(logprobs);
    // Training goes on from the adapter, and the reference is where it starts.
    await train(adapted, 1);
    expect((await adapted.forward(batch, { weights: 'reference' })).logprobs).toEqual(logprobs);
    expect((await adapted.forward(batch)).logprobs).not.toEqual(logprobs);
    await expect(start({ initSeed: 4, lora: { directory: join(directory, 'adapter') } })).rejects.toThrow(
      /trained on other weights/,
    );
  });
});

describe('a critic with an adapter', () => {
  it('trains its value head as well, and is written with it', async () => {
    const critic = await start({ head: 'score' });
    const values = { returns: [Float32Array.of(1, 1, 0, 2)], old_values: [new Float32Array(4)] };
    const lesson = { ...batch, inputs: { ...batch.inputs, share: batch.inputs.weights, ...values } };
    const losses: number[] = [];
    for (let step = 0; step < 4; step++) {
      losses.push((await critic.forwardBackward(lesson, valueLoss())).loss!);
      await critic.optimizerStep({ lr: 0.02 });
    }
    expect(losses.toSorted((a, b) => b - a)).toEqual(losses);
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
    const said = await critic.values(batch);
    expect(said[0]!.some(value => Math.abs(value) > 0.01)).toBe(true);
    const directory = join(root, 'critic');
    await critic.export(directory);
    const written = await OnnxEngine.start({ ...hostOptions(directory), head: 'score' });
    started.push(written);
    expectClose(await written.values(batch), said);
    const adapted = await start({ head: 'score', lora: { directory: join(directory, 'adapter') } });
    expect(await adapted.values(batch)).toEqual(said);
  });
});

describe('mergeAdapter', () => {
  it.each(['grouped-all', 'score'])('writes what the engine computes (%s)', async name => {
    const { base, directory } = loraGolden(name);
    const output = join(root, `merged-${name}`);
    await mergeAdapter({ model: base, adapter: directory, output });
    const model = new Model(base, undefined, undefined, { directory });
    expect(openCheckpoint(output).weights).not.toEqual(model.adapter!.base.weights);
    const [adapted, merged] = [
      await start({ model: base, lora: { directory } }),
      await OnnxEngine.start(hostOptions(output)),
    ];
    started.push(merged);
    const ask = async (one: OnnxEngine) => (name === 'score' ? one.values(batch) : (await one.forward(batch)).logprobs);
    expectClose(await ask(merged), await ask(adapted));
  });

  it('does not replace the base, nor what is no checkpoint', async () => {
    const { base, directory } = loraGolden('grouped-all');
    const merge = (output: string) => mergeAdapter({ model: base, adapter: directory, output });
    await expect(merge(`${base}/`)).rejects.toThrow(/would replace its base/);
    await expect(merge(directory)).rejects.toThrow(/holds files .* but no checkpoint/);
  });
});
