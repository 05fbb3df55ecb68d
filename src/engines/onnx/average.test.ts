import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { hostOptions, tinyModel } from '../../../tests/support/engines.ts';
import { OnnxEngine } from './engine.ts';

interface Golden {
  readonly average: { readonly beta: number; readonly steps: readonly number[][]; readonly average: readonly number[] };
}
const path = new URL('../../../tests/goldens/evaluation.json', import.meta.url);
const { average: golden } = JSON.parse(readFileSync(path, 'utf8')) as Golden;

it("the moving average of the weights is torch's", async () => {
  const directory = mkdtempSync(join(tmpdir(), 'average-'));
  const engine = await OnnxEngine.start(hostOptions(tinyModel(directory), { initSeed: 1 }));
  try {
    const weights = await engine.weights();
    for (const [step, values] of golden.steps.entries()) {
      weights.set(values);
      await engine.setWeights(weights.slice(), step);
      await engine.average.update({ beta: step === 0 ? 0 : golden.beta });
    }
    await engine.average.swap();
    const averaged = await engine.weights();
    // Torch rounds each step to float32 after a subtraction; ours is one rounding of a float64 sum.
    for (const [i, value] of golden.average.entries()) expect(averaged[i]).toBeCloseTo(value, 6);
    await engine.average.swap();
    expect((await engine.weights()).subarray(0, 5)).toEqual(Float32Array.from(golden.steps.at(-1)!));
  } finally {
    await engine.close();
    rmSync(directory, { recursive: true });
  }
});
