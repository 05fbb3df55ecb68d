import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { SafetensorsFile } from '../../nn/checkpoint/safetensors.ts';
import { AdamW, type AdamWOptions, clipFactor, globalNorm } from './optimizer.ts';

const directory = fileURLToPath(new URL('../../../tests/goldens/adamw/', import.meta.url));
const cases: Record<
  string,
  Omit<AdamWOptions, 'decayMask'> & { maxNorm: number; lrs: number[]; decayVector: boolean }
> = JSON.parse(readFileSync(`${directory}cases.json`, 'utf8'));
/** The goldens' weights are a [7, 5] matrix followed by a [6] vector. */
const MATRIX = 35;

/** Largest |a - b| / max(|b|, floor). */
function relativeDifference(a: Float32Array, b: Float32Array, floor: number): number {
  expect(a.length).toBe(b.length);
  return a.reduce((worst, value, i) => Math.max(worst, Math.abs(value - b[i]!) / Math.max(Math.abs(b[i]!), floor)), 0);
}

describe.each(Object.entries(cases))('AdamW, golden %s', (name, golden) => {
  const file = new SafetensorsFile(`${directory}${name}.safetensors`);
  afterAll(() => file.close());
  const weights = file.readTensor('weights');
  const size = weights.length;
  const decayMask = [
    { offset: 0, size: MATRIX, decay: true },
    { offset: MATRIX, size: size - MATRIX, decay: golden.decayVector },
  ];
  const optimizer = new AdamW(size, { ...golden, decayMask });
  const row = (tensor: string, step: number) => file.readTensor(tensor).subarray(step * size, (step + 1) * size);

  it('equals PyTorch over 20 clipped steps', () => {
    const norms = file.readTensor('norms');
    for (const [step, lr] of golden.lrs.entries()) {
      const gradient = row('gradients', step);
      const norm = globalNorm(gradient);
      const factor = clipFactor(norm, golden.maxNorm);
      // Float32 rounding of PyTorch's own sums and products: a few units of 2^-24, accumulating over the steps.
      expect(Math.abs(norm - norms[step]!) / norms[step]!).toBeLessThan(5e-7);
      expect(
        relativeDifference(
          gradient.map(value => factor * value),
          row('clipped', step),
          1e-30,
        ),
      ).toBeLessThan(5e-7);
      optimizer.step(weights, gradient, lr, factor);
      expect(relativeDifference(weights, row('after', step), 0.1)).toBeLessThan(3e-6);
    }
    const { step, firstMoment, secondMoment } = optimizer.state();
    expect(step).toBe(20);
    expect(relativeDifference(firstMoment, file.readTensor('first_moment'), 1e-3)).toBeLessThan(3e-6);
    expect(relativeDifference(secondMoment, file.readTensor('second_moment'), 1e-6)).toBeLessThan(3e-6);
  });

  it('has steps that are clipped and steps that are not', () => {
    const clipped = file.readTensor('norms').filter(norm => norm > golden.maxNorm).length;
    expect(clipped).toBeGreaterThan(0);
    expect(clipped).toBeLessThan(20);
  });
});

describe('AdamW', () => {
  const options = { betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.1 } as const;
  const gradientOf = (step: number) => Float32Array.from({ length: 9 }, (_, i) => Math.sin(7 * step + i));

  it('continues exactly from a loaded state', () => {
    const whole = new AdamW(9, options);
    const first = new AdamW(9, options);
    const [a, b] = [new Float32Array(9).fill(1), new Float32Array(9).fill(1)];
    for (let step = 0; step < 6; step++) whole.step(a, gradientOf(step), 0.01);
    for (let step = 0; step < 3; step++) first.step(b, gradientOf(step), 0.01);
    const second = new AdamW(9, options);
    second.load(first.state());
    for (let step = 3; step < 6; step++) second.step(b, gradientOf(step), 0.01);
    expect(b).toEqual(a);
  });

  it('copies the state it loads', () => {
    const [a, b] = [new AdamW(9, options), new AdamW(9, options)];
    b.load(a.state());
    a.step(new Float32Array(9), gradientOf(0), 0.01);
    expect(b.state()).toEqual({ step: 0, firstMoment: new Float32Array(9), secondMoment: new Float32Array(9) });
  });

  it('spares any set of ranges from decay, in any order', () => {
    const decayMask = [
      { offset: 5, size: 2, decay: false },
      { offset: 2, size: 3, decay: true },
      { offset: 0, size: 2, decay: false },
    ];
    const weights = new Float32Array(9).fill(1);
    new AdamW(9, { ...options, weightDecay: 0.5, decayMask }).step(weights, new Float32Array(9), 1);
    expect([...weights]).toEqual([1, 1, 0.5, 0.5, 0.5, 1, 1, 0.5, 0.5]);
  });

  it('refuses arrays of another size and impossible settings', () => {
    const optimizer = new AdamW(9, options);
    expect(() => optimizer.step(new Float32Array(9), new Float32Array(8), 0.1)).toThrow('AdamW of 9 weights: got 9');
    expect(() => optimizer.load(new AdamW(8, options).state())).toThrow('another model');
    expect(() => new AdamW(9, { ...options, betas: [0.9, 1] })).toThrow('betas[1] is 1');
    expect(() => new AdamW(9, { ...options, weightDecay: -1 })).toThrow('weightDecay is -1');
  });
});

describe('clipFactor', () => {
  it('leaves a gradient whose norm is small enough, or that no norm bounds', () => {
    expect(clipFactor(0.5, 1)).toBe(1);
    expect(clipFactor(5, Number.POSITIVE_INFINITY)).toBe(1);
  });
});

describe('globalNorm', () => {
  it.each([0, 1, 2, 3, 4, 5, 1001])('sums all %i elements', length => {
    expect(globalNorm(new Float32Array(length).fill(2))).toBe(Math.sqrt(4 * length));
  });

  it('does not overflow float32', () => {
    expect(globalNorm(Float32Array.of(3e30, 4e30)) / 5e30).toBeCloseTo(1, 6);
  });
});
