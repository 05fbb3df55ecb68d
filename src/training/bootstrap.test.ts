import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pairedBootstrap, standardError } from './bootstrap.ts';
import { passAtK } from './evaluate.ts';

interface Golden {
  readonly pass_at_k: readonly (readonly [n: number, c: number, k: number, value: number])[];
  readonly standard_errors: readonly { readonly values: number[]; readonly value: number }[];
  readonly bootstrap: readonly {
    readonly before: number[];
    readonly after: number[];
    readonly indices: number[][];
    readonly difference: number;
    readonly low: number;
    readonly high: number;
    readonly scipy: readonly [number, number];
    readonly standard_error: number;
  }[];
}
const path = new URL('../../tests/goldens/evaluation.json', import.meta.url);
const golden = JSON.parse(readFileSync(path, 'utf8')) as Golden;

it("pass@k is the HumanEval harness's", () => {
  // Both are products of at most 100 factors in float64.
  for (const [n, c, k, value] of golden.pass_at_k) expect(passAtK(n, c, k)).toBeCloseTo(value, 12);
});

it("the standard error of a mean is scipy's", () => {
  for (const { values, value } of golden.standard_errors) expect(standardError(values)).toBeCloseTo(value, 12);
});

it("on numpy's resamples mean and interval are numpy's", () => {
  for (const { before, after, indices, difference, low, high } of golden.bootstrap) {
    const drawn = indices.flat();
    let at = 0;
    const result = pairedBootstrap(before, after, { resamples: indices.length, draw: () => drawn[at++]! });
    expect(at).toBe(drawn.length);
    expect(result.difference).toBeCloseTo(difference, 12);
    expect(result.low).toBeCloseTo(low, 12);
    expect(result.high).toBeCloseTo(high, 12);
  }
});

it("on resamples of its own the interval is scipy's, within what chance leaves open", () => {
  for (const { before, after, scipy, standard_error: error } of golden.bootstrap) {
    const { low, high } = pairedBootstrap(before, after, { resamples: 20_000 });
    // A 2.5 % quantile of 20 000 normal values has a standard error of 0.019 deviations; both sides have it.
    const tolerance = 5 * Math.SQRT2 * 0.019 * error;
    expect(Math.abs(low - scipy[0])).toBeLessThan(tolerance);
    expect(Math.abs(high - scipy[1])).toBeLessThan(tolerance);
  }
});

it('tells a difference from none', () => {
  const before = Array.from({ length: 50 }, (_, i) => (i % 3) / 2);
  const same = pairedBootstrap(before, before);
  expect(same).toEqual({ difference: 0, low: 0, high: 0, p: 1 });
  const better = pairedBootstrap(
    before,
    before.map((value, i) => value + (i % 5 === 0 ? 0 : 0.25)),
  );
  expect(better.low).toBeGreaterThan(0.1);
  expect(better.p).toBe(2 / 2001);
  const noise = pairedBootstrap(
    before,
    before.map((value, i) => value + (i % 2 === 0 ? 0.5 : -0.5)),
  );
  expect(noise.p).toBeGreaterThan(0.5);
  expect(() => pairedBootstrap([1], [])).toThrow(/as many values before as after.*got 1 and 0/);
  expect(() => pairedBootstrap([], [])).toThrow(/at least one/);
});
