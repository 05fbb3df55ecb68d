import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { evaluate } from '../numeric.ts';
import type { Loss } from '../ops.ts';
import { pairwiseInputs, preferenceInputs } from '../pair-inputs.ts';
import { pairwiseLoss } from './pairwise.ts';
import { preferenceLoss } from './preference.ts';

/** Against TRL's and OpenRLHF's losses of pairs; see tools/golden/preferences.py. */

interface Expected {
  readonly loss: number;
  readonly acc?: number;
  readonly chosen_reward?: number;
  readonly reject_reward?: number;
}

interface RewardCase {
  readonly chosen: number[];
  readonly rejected: number[];
  readonly margin: number[];
  readonly expected: Readonly<Record<string, Expected & { readonly gradient: [number[], number[]] }>>;
}

interface PreferenceCase {
  /** Per pair the chosen and the rejected answer, per answer its tokens. */
  readonly logprobs: number[][][];
  readonly reference: number[][][];
  readonly expected: Readonly<Record<string, Expected & { readonly gradient: number[][][] }>>;
}

const golden = JSON.parse(
  readFileSync(new URL('../../../tests/goldens/algorithms/preferences.json', import.meta.url), 'utf8'),
) as { readonly rewards: RewardCase[]; readonly preferences: PreferenceCase[] };

/**
 * Both sides compute in float64; what differs is that weights, margins and reference log-probs are float32 here: half a
 * unit in the last place of 24 bits each, 6e-8 of numbers up to 400.
 */
const TOLERANCE = 5e-7;

function close(got: number, expected: number, scale: number): void {
  expect(Math.abs(got - expected)).toBeLessThanOrEqual(TOLERANCE * Math.max(1, Math.abs(expected), scale));
}

function compare(loss: Loss, context: Parameters<typeof evaluate>[1], expected: Expected, gradient: number[]): void {
  const found = evaluate(loss, context);
  close(found.loss, expected.loss, 0);
  for (const name of ['acc', 'chosen_reward', 'reject_reward'] as const) {
    if (expected[name] !== undefined) close(found.metrics[name]!, expected[name], 0);
  }
  const own = [...(found.gradient.values ?? found.gradient.logprobs)];
  expect(own).toHaveLength(gradient.length);
  const scale = Math.max(...gradient.map(Math.abs));
  for (const [i, value] of own.entries()) close(value, gradient[i]!, scale);
}

describe('the pairwise loss', () => {
  it.each([
    ['trl', pairwiseLoss(), false],
    ['trl margin', pairwiseLoss(), true],
    ['openrlhf', pairwiseLoss(), false],
    ['openrlhf margin', pairwiseLoss({ type: 'sigmoid' }), true],
    ['openrlhf logexp', pairwiseLoss({ type: 'logexp' }), true],
  ])('is the one of %s', (name, loss, withMargin) => {
    for (const { chosen, rejected, margin, expected } of golden.rewards) {
      const inputs = pairwiseInputs(withMargin ? margin : margin.map(() => 0));
      const values = chosen.flatMap((reward, i) => [reward, rejected[i]!]);
      const flat = Object.fromEntries(Object.entries(inputs).map(([key, arrays]) => [key, flatten(arrays)]));
      const [c, r] = expected[name]!.gradient;
      const context = { sequences: chosen.map(() => 2), logprobs: values.map(() => 0), values, inputs: flat };
      compare(
        loss,
        context,
        expected[name]!,
        c.flatMap((d, i) => [d, r[i]!]),
      );
    }
    expect(golden.rewards.length).toBeGreaterThanOrEqual(20);
  });

  it('tells the share of pairs in the right order and the mean reward of each side', () => {
    const inputs = Object.fromEntries(Object.entries(pairwiseInputs([0, 5])).map(([k, v]) => [k, flatten(v)]));
    const context = { sequences: [2, 2], logprobs: [0, 0, 0, 0], values: [3, 1, 2, 2], inputs };
    expect(evaluate(pairwiseLoss(), context).metrics).toEqual({ acc: 0.5, chosen_reward: 2.5, reject_reward: 1.5 });
  });

  it('is finite where rewards are far apart the wrong way round', () => {
    const inputs = Object.fromEntries(Object.entries(pairwiseInputs([0])).map(([k, v]) => [k, flatten(v)]));
    const context = { sequences: [2], logprobs: [0, 0], values: [-1e4, 1e4], inputs };
    expect(evaluate(pairwiseLoss({ type: 'logexp' }), context).loss).toBe(2e4);
  });

  it('refuses another type', () => {
    expect(() => pairwiseLoss({ type: 'hinge' as 'sigmoid' })).toThrow(/one of sigmoid, logexp, got hinge/);
  });
});

describe('the preference loss', () => {
  it.each([
    ['trl', preferenceLoss(), false],
    ['trl beta', preferenceLoss({ beta: 0.7 }), false],
    ['trl mean', preferenceLoss({ beta: 0.7 }), true],
    ['trl ipo', preferenceLoss({ beta: 0.2, ipo: true }), true],
    ['openrlhf', preferenceLoss({ beta: 0.1 }), false],
    ['openrlhf smoothing', preferenceLoss({ beta: 0.3, labelSmoothing: 0.1 }), false],
    ['openrlhf ipo', preferenceLoss({ beta: 0.2, ipo: true }), false],
    ['openrlhf nll', preferenceLoss({ nllCoefficient: 0.25 }), false],
    ['trl sft', preferenceLoss({ nllCoefficient: 0.25 }), false],
  ])('is the one of %s', (name, loss, mean) => {
    let cases = 0;
    for (const { logprobs, reference, expected } of golden.preferences) {
      const wanted = expected[name];
      if (wanted === undefined) continue;
      cases += 1;
      const sequences = reference.map(([chosen, rejected]) => chosen!.length + rejected!.length);
      const made = preferenceInputs(
        reference.flat().map(row => Float32Array.from(row)),
        { mean },
      );
      const inputs = Object.fromEntries(Object.entries(made).map(([key, arrays]) => [key, flatten(arrays)]));
      // Rewards are sums in both libraries, whatever is compared.
      compare(loss, { sequences, logprobs: logprobs.flat(2), inputs }, wanted, wanted.gradient.flat(2));
    }
    expect(cases).toBeGreaterThanOrEqual(name === 'trl sft' ? 3 : 20);
  });

  it.each([
    [{ beta: 0 }, /beta .* above 0, got 0/],
    [{ labelSmoothing: 0.5 }, /in \[0, 0\.5\), got 0\.5/],
    [{ labelSmoothing: 0.1, ipo: true }, /no meaning for IPO/],
    [{ nllCoefficient: -1 }, /must be ≥ 0, got -1/],
    [{ beta: Number.NaN }, /above 0, got NaN/],
  ])('refuses %j', (options, message) => {
    expect(() => preferenceLoss(options)).toThrow(message);
  });
});

function flatten(arrays: readonly Float32Array[]): number[] {
  return arrays.flatMap(array => [...array]);
}
