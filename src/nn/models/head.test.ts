import { describe, expect, it } from 'vitest';
import { evaluate, gradientErrors, ints, wave } from '../../../tests/support/graph.ts';
import { gradients } from '../derivative.ts';
import { constant, input, type Node } from '../graph.ts';
import { emit } from '../onnx.ts';
import * as ops from '../ops.ts';
import { tokenPredictions } from './head.ts';

const TOKENS = 3;
const VOCABULARY = 7;
const HIDDEN = 4;
/** Rows of blocks: all in one, and cut unevenly. */
const CUTS = { whole: [7], blocks: [3, 3, 1], rows: [1, 1, 1, 1, 1, 1, 1] };

function predictions(rows: Node, cut: readonly number[], cap: number | null) {
  const blocks = cut.map((count, i) => input(`block.${i}`, [count, HIDDEN]));
  const head = tokenPredictions(rows, { blocks, cap }, input('targets', ['P'], 'int64'), input('scale', []));
  return { ...head, blocks };
}

function feedsOf(cut: readonly number[], size = 1) {
  const matrix = wave(VOCABULARY * HIDDEN, 2).map(value => size * value);
  let start = 0;
  const blocks = cut.map((count, i) => {
    const values = matrix.subarray(start, start + count * HIDDEN);
    start += count * HIDDEN;
    return [`block.${i}`, values] as const;
  });
  return { ...Object.fromEntries(blocks), targets: ints(0, 6, 3), scale: Float32Array.of(1 / 0.7) };
}

/** Log-probabilities and entropies in float64. */
function expected(rows: Float32Array, matrix: Float32Array, cap: number | null) {
  const logits = Array.from({ length: TOKENS }, (_, p) =>
    Array.from({ length: VOCABULARY }, (_, v) => {
      let sum = 0;
      for (let i = 0; i < HIDDEN; i++) sum += rows[p * HIDDEN + i]! * matrix[v * HIDDEN + i]!;
      return (cap === null ? sum : cap * Math.tanh(sum / cap)) / 0.7;
    }),
  );
  const logp = logits.map(row => {
    const most = Math.max(...row);
    const normaliser = most + Math.log(row.reduce((sum, z) => sum + Math.exp(z - most), 0));
    return row.map(z => z - normaliser);
  });
  return {
    logprobs: [0, 6, 3].map((target, p) => logp[p]![target]!),
    entropy: logp.map(row => -row.reduce((sum, value) => sum + Math.exp(value) * value, 0)),
  };
}

describe('predictions of tokens', () => {
  it.each(Object.entries(CUTS))('have the values of the whole vocabulary: %s', async (_, cut) => {
    for (const [size, cap] of [
      [1, null],
      [40, null],
      [40, 30],
    ] as const) {
      const { blocks: _, ...outputs } = predictions(input('rows', ['P', HIDDEN]), cut, cap);
      const rows = wave(TOKENS * HIDDEN);
      const found = await evaluate(outputs, { rows, ...feedsOf(cut, size) }, { P: TOKENS });
      const matrix = wave(VOCABULARY * HIDDEN, 2).map(value => size * value);
      for (const [name, values] of Object.entries(expected(rows, matrix, cap))) {
        // Float32 products of size up to 100.
        values.forEach((value, p) => void expect(Math.abs((found[name]![p] as number) - value)).toBeLessThan(2e-5));
      }
    }
  });

  it.each(Object.entries(CUTS))('have gradients that agree with finite differences: %s', async (_, cut) => {
    for (const cap of [null, 1.5]) {
      const errors = await gradientErrors({
        of: [['P', HIDDEN], ...cut.map(count => [count, HIDDEN])],
        symbols: { P: TOKENS },
        build: ([rows, ...blocks]) => {
          const targets = constant(ints(0, 6, 3), [TOKENS]);
          const fixed = ops.gatherRows(targets, input('order', ['P'], 'int64'));
          const { logprobs, entropy } = tokenPredictions(
            rows!,
            { blocks, cap },
            fixed,
            constant(Float32Array.of(2), []),
          );
          return ops.concat([logprobs, entropy], 0);
        },
        fixed: { order: { shape: ['P'], dtype: 'int64', data: ints(0, 1, 2) } },
      });
      expect(errors).toEqual([]);
    }
  });

  it('in blocks keep no logits for the way back, and leave out what is not asked for', () => {
    const { logprobs, blocks } = predictions(ops.neg(input('rows', ['P', HIDDEN])), CUTS.blocks, null);
    const loss = ops.reduceSum(logprobs);
    const grads = gradients(loss, blocks);
    const text = Buffer.from(emit({ loss, ...Object.fromEntries(grads.map((node, i) => [`g${i}`, node])) }).bytes);
    const count = (word: string) => text.toString('latin1').split(word).length - 1;
    // Logits forward, again on the way back, and the block's gradient; none for the rows, which are fed.
    expect(count('Gemm')).toBe(3 * 3);
  });
});
