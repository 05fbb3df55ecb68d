import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { tokenMean } from '../aggregate.ts';
import { evaluate } from '../numeric.ts';
import { likelihoodLoss } from './likelihood.ts';

/** Against the loss of TRL's SFTTrainer over a batch; see tools/golden/demonstrations.py. */

interface Batch {
  readonly logprobs: number[][];
  readonly loss: number;
  readonly gradient: number[][];
}

const path = new URL('../../../tests/goldens/algorithms/demonstrations.json', import.meta.url);
const batches = JSON.parse(readFileSync(path, 'utf8')) as Batch[];

it("is the loss of TRL's SFT with its gradient", () => {
  for (const { logprobs, loss, gradient } of batches) {
    const counts = logprobs.map(row => row.length);
    const weights = tokenMean(counts).flatMap(row => [...row]);
    const found = evaluate(likelihoodLoss(), { sequences: counts, logprobs: logprobs.flat(), inputs: { weights } });
    // Both in float64 but for the weights, which are float32 here: half a unit of 24 bits.
    expect(Math.abs(found.loss - loss)).toBeLessThanOrEqual(1e-6 * Math.abs(loss));
    expect(found.metrics.gpt_loss).toBe(found.loss);
    const expected = gradient.flat();
    expect(found.gradient.logprobs).toHaveLength(expected.length);
    for (const [i, value] of expected.entries()) {
      expect(Math.abs(found.gradient.logprobs[i]! - value)).toBeLessThanOrEqual(1e-6 * Math.abs(value));
    }
  }
  expect(batches).toHaveLength(20);
});
