import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { golden, SCORE_MODELS, scoreGolden } from '../../../tests/support/goldens.ts';
import { packBatch } from '../../engines/onnx/batch.ts';
import { Model } from '../../engines/onnx/model.ts';
import { packedPositions } from '../../engines/onnx/positions.ts';
import { Session } from '../../engines/onnx/session.ts';
import { writeCheckpoint } from '../checkpoint/directory.ts';
import { gradients } from '../derivative.ts';
import { input, scalar } from '../graph.ts';
import { emit } from '../onnx.ts';
import { mean, mul, square, sub } from '../ops.ts';
import { trainingForm, valueForm } from './decoder.ts';
import { decoderConfig, scoreConfig } from './families.ts';
import { initialise, parameterLayout } from './parameters.ts';
import { fixedWeights } from './policy-weights.ts';
import { decodeForm } from './sampling.ts';
import { weightInputs } from './weights.ts';

/** Absolute on values, of the largest element on gradients: the bar against Transformers. */
const TOLERANCE = 1e-4;

function furthest(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  return Array.from(actual).reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
}

describe.each(SCORE_MODELS)('the value head of %s', name => {
  const data = scoreGolden(name);
  const model = new Model(data.directory);

  it("has Transformers' values and gradients", async () => {
    const weights = weightInputs(model.layout);
    const values = valueForm(model.config, weights);
    const loss = mean(mul(square(sub(values, input('target', ['P']))), scalar(0.5)));
    const names = model.layout.map(parameter => parameter.name);
    const slopes = gradients(loss, names.map(weights));
    const outputs = Object.fromEntries(names.map((parameter, i) => [`grad.${parameter}`, slopes[i]!]));
    const session = await Session.create(emit({ values, loss, ...outputs }), { threads: 2 });
    // A value belongs to what was read so far: a last token that is only predicted lets every real one be read.
    const packed = packBatch(
      data.sequences.map(tokens => ({
        tokens: Int32Array.from([...tokens, 0]),
        predict: Uint8Array.from([0, ...tokens.map(() => 1)]),
      })),
      model.config,
    );
    const expected = (prefix: string) => data.sequences.flatMap((_, i) => [...data.tensors.get(`${prefix}.${i}`)!]);
    const { targets: _, ...feeds } = packed.feeds;
    const result = await session.run(
      {
        ...model.views(model.weights),
        ...feeds,
        ...packedPositions(model, packed.rows),
        target: Float32Array.from(expected('targets')),
      },
      packed.symbols,
    );
    await session.release();
    expect(furthest(result.values as Float32Array, expected('values'))).toBeLessThan(TOLERANCE);
    expect((result.loss as Float32Array)[0]).toBeCloseTo(data.loss, 5);
    for (const { name: parameter, parts } of model.layout) {
      const gradient = parts.flatMap(({ tensor }) => [...data.tensors.get(`grad.${tensor}`)!]);
      const largest = Math.max(...gradient.map(Math.abs));
      expect(furthest(result[`grad.${parameter}`] as Float32Array, gradient) / largest).toBeLessThan(TOLERANCE);
    }
  });

  it('predicts no tokens', () => {
    const weights = weightInputs(model.layout);
    expect(() => trainingForm(model.config, weights)).toThrow('with a value head predicts no tokens');
    expect(() => decodeForm(model.config, fixedWeights(weights))).toThrow('with a value head predicts no tokens');
  });
});

it('is written as a checkpoint that is read again', async () => {
  const root = mkdtempSync(join(tmpdir(), 'tokenloop-score-'));
  try {
    const language = new Model(golden('gemma2').directory);
    expect(() => valueForm(language.config, weightInputs(language.layout))).toThrow('has no value head');
    const rawConfig = scoreConfig(language.rawConfig);
    const config = decoderConfig(rawConfig);
    const layout = parameterLayout(config);
    const weights = initialise(config, layout, 3);
    await writeCheckpoint(join(root, 'critic'), { rawConfig, layout, weights });
    const again = new Model(join(root, 'critic'));
    expect(again.config).toEqual(config);
    expect(again.weights).toEqual(weights);
  } finally {
    rmSync(root, { recursive: true });
  }
});
