import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { goldenModel, LORA_CASES, loraGolden } from '../../../tests/support/goldens.ts';
import { SafetensorsFile } from '../../nn/checkpoint/safetensors.ts';
import type { TensorPlace } from '../../nn/models/parameters.ts';
import { Model } from './model.ts';
import { hiddenMatrices, Muon, type MuonOptions } from './muon.ts';
import { muonFromOptions, muonValues } from './muon-options.ts';

const root = fileURLToPath(new URL('../../../tests/goldens/muon/', import.meta.url));

interface Case extends Omit<MuonOptions, 'lrRatio'> {
  readonly lr: number;
  readonly adamLr: number;
  readonly weightDecay: number;
  readonly betas: [number, number];
  readonly eps: number;
}
const cases = JSON.parse(readFileSync(`${root}cases.json`, 'utf8')) as Record<string, Case>;

function placesOf(shapes: readonly (readonly [number, number])[]): TensorPlace[] {
  let offset = 0;
  return shapes.map((shape, i) => {
    const size = shape[0] * shape[1];
    const place = { tensor: `m${i}`, shape, offset, size };
    offset += size;
    return place;
  });
}

const MATRICES = placesOf([
  [9, 5],
  [4, 11],
  [6, 6],
]);
const SIZE = 45 + 44 + 36 + 7;
const VECTOR = { offset: SIZE - 7, size: 7, decay: false };

function optimizerOf(golden: Case): Muon {
  const adam = { ...golden, decayMask: [VECTOR] };
  return new Muon(SIZE, adam, MATRICES, { ...golden, lrRatio: golden.lr / golden.adamLr }, { threads: 1 });
}

describe.each(Object.entries(cases))('Muon: %s', (name, golden) => {
  const file = new SafetensorsFile(`${root}${name}.safetensors`);
  const row = (tensor: string, step: number) => file.readTensor(tensor).slice(step * SIZE, (step + 1) * SIZE);

  it('equals PyTorch over 20 steps', async () => {
    const optimizer = optimizerOf(golden);
    const weights = file.readTensor('weights');
    for (let step = 0; step < 20; step++) {
      await optimizer.step(weights, row('gradients', step), golden.adamLr);
      const after = row('after', step);
      // Every product in float32 on both sides, in another order; the iteration makes small singular values large.
      weights.forEach((value, i) => void expect(Math.abs(value - after[i]!)).toBeLessThan(2e-5));
    }
    const { step, firstMoment, secondMoment } = optimizer.state();
    expect(step).toBe(20);
    const momentum = file.readTensor('momentum');
    for (let i = 0; i < VECTOR.offset; i++) {
      expect(firstMoment[i]! - momentum[i]!).toBeCloseTo(0, 6);
      expect(secondMoment[i]).toBe(0);
    }
    await optimizer.close();
  });

  it('continues exactly from a loaded state, and scales the gradient by a factor', async () => {
    const [whole, first, second] = [optimizerOf(golden), optimizerOf(golden), optimizerOf(golden)];
    const [a, b] = [file.readTensor('weights'), file.readTensor('weights')];
    for (let step = 0; step < 6; step++) await whole.step(a, row('gradients', step), 0.01);
    const doubled = (step: number) => row('gradients', step).map(value => 2 * value);
    for (let step = 0; step < 3; step++) await first.step(b, doubled(step), 0.01, 0.5);
    second.load(first.state());
    for (let step = 3; step < 6; step++) await second.step(b, row('gradients', step), 0.01);
    expect(b).toEqual(a);
    for (const each of [whole, first, second]) await each.close();
  });
});

describe('Muon', () => {
  it('makes the singular values of a matrix nearly equal, and nothing of zeros', async () => {
    const golden = { ...cases.nesterov!, weightDecay: 0 };
    const optimizer = optimizerOf(golden);
    const [before, weights] = [new Float32Array(SIZE), new Float32Array(SIZE)];
    const gradient = Float32Array.from({ length: SIZE }, (_, i) => (i >= 45 && i < 89 ? 1e-3 * Math.sin(i * i) : 0));
    await optimizer.step(weights, gradient, golden.adamLr);
    expect(weights.subarray(0, 45)).toEqual(before.subarray(0, 45));
    // The four rows of the wide matrix are orthogonal, of about equal length: the iteration leaves 0.7 to 1.2.
    const rows = Array.from({ length: 4 }, (_, r) => [...weights.subarray(45 + 11 * r, 56 + 11 * r)]);
    for (const [i, a] of rows.entries()) {
      for (const [j, b] of rows.entries()) {
        const product = a.reduce((sum, value, k) => sum + value * b[k]!, 0) / golden.lr ** 2;
        if (i === j) expect(Math.sqrt(product)).toBeGreaterThan(0.6);
        expect(Math.sqrt(Math.abs(product))).toBeLessThan(i === j ? 1.3 : 0.6);
      }
    }
    await optimizer.close();
  });

  it('is for the matrices inside the layers, one by one as they are in the checkpoint', () => {
    const { layout, config } = new Model(goldenModel('full-untied-sharded'));
    const names = hiddenMatrices(layout).map(({ tensor }) => tensor);
    expect(names).toHaveLength(7 * config.layers);
    expect(names).toContain('model.layers.0.self_attn.k_proj.weight');
    const data = loraGolden(LORA_CASES.find(name => name === 'score')!);
    const adapter = new Model(data.base, undefined, undefined, { directory: data.directory });
    const factors = hiddenMatrices(adapter.layout);
    expect(factors.length).toBeGreaterThan(0);
    expect(factors.every(({ tensor }) => tensor.includes('.lora_'))).toBe(true);
  });

  it('refuses settings that make no sense', () => {
    const make = (options: Partial<MuonOptions>) => () =>
      new Muon(1, cases.nesterov!, [], { lrRatio: 1, momentum: 0.9, nesterov: true, steps: 5, ...options });
    expect(make({ momentum: 1 })).toThrow('Muon: momentum is 1');
    expect(make({ steps: 0 })).toThrow('Muon: steps is 0');
    expect(make({ lrRatio: -1 })).toThrow('Muon: lrRatio is -1');
  });
});

describe('options of Muon', () => {
  const asked = (given: object) =>
    muonFromOptions(muonValues(given as Record<string, unknown>, 'actor.'), 0.005, 'actor.');

  it('are those of the field, and its learning rate follows that of adam', () => {
    expect(asked({ 'actor.optim': 'muon' })).toEqual({ lrRatio: 4, momentum: 0.95, steps: 5, nesterov: true });
    const given = { 'actor.muon.lr': 0.01, 'actor.muon.momentum': 0.9, 'actor.muon.ns_steps': 3 };
    const whole = { 'actor.optim': 'muon', ...given, 'actor.muon.nesterov': false };
    expect(asked(whole)).toEqual({ lrRatio: 2, momentum: 0.9, steps: 3, nesterov: false });
  });

  it('are refused without it', () => {
    expect(asked({ 'actor.optim': 'adam' })).toBeUndefined();
    expect(() => asked({ 'actor.optim': 'adam', 'actor.muon.lr': 0.01 })).toThrow(
      'actor.muon.lr is a setting of Muon, and the optimizer is adam: set actor.optim to muon',
    );
  });
});
