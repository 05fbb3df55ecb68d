/**
 * Writes every golden decoder, its weights moved a little as training would, with the logits computed for it, so that
 * check_export.py can load them in Transformers.
 *
 * Usage:  npx tsx tools/golden/export.ts <directory>
 *         for m in <directory>/*; do python tools/golden/check_export.py $m/model $m/logits.safetensors; done
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packBatch } from '../../src/engines/onnx/batch.ts';
import { Model } from '../../src/engines/onnx/model.ts';
import { sequencePositions } from '../../src/engines/onnx/positions.ts';
import { Session } from '../../src/engines/onnx/session.ts';
import { writeCheckpoint } from '../../src/nn/checkpoint/directory.ts';
import { writeSafetensors } from '../../src/nn/checkpoint/safetensors.ts';
import { trainingForm, valueForm, weightInputs } from '../../src/nn/models/decoder.ts';
import { emit } from '../../src/nn/onnx.ts';
import { GOLDEN_MODELS, golden, SCORE_MODELS, scoreGolden } from '../../tests/support/goldens.ts';

/** Logits [T, V] of each sequence, or values [T, 1] where the model has a value head. */
async function outputs(model: Model, sequences: readonly (readonly number[])[]): Promise<Float32Array[]> {
  const { config, layout } = model;
  const weights = weightInputs(layout);
  const result = config.head === 'score' ? valueForm(config, weights) : trainingForm(config, weights).logits;
  const session = await Session.create(emit({ result }), { threads: 2 });
  const all: Float32Array[] = [];
  for (const tokens of sequences) {
    const predict = Uint8Array.from([0, ...tokens.map(() => 1)]);
    const { feeds, symbols } = packBatch([{ tokens: Int32Array.from([...tokens, 0]), predict }]);
    const { targets: _, ...inputs } = feeds;
    const positions = sequencePositions(model, symbols.T);
    const { result: values } = await session.run({ ...model.views(model.weights), ...inputs, ...positions }, symbols);
    all.push(Float32Array.from(values as Float32Array));
  }
  await session.release();
  return all;
}

const root = process.argv[2];
if (root === undefined) throw new Error('usage: npx tsx tools/golden/export.ts <directory>');
const goldens = [
  ...GOLDEN_MODELS.map(name => ({ name, ...golden(name) })),
  ...SCORE_MODELS.map(name => ({ name: `score-${name}`, ...scoreGolden(name) })),
];
for (const { name, directory, sequences } of goldens) {
  const model = new Model(directory);
  model.weights.forEach((weight, i) => {
    model.weights[i] = weight + 0.01 * Math.sin(i);
  });
  const target = join(root, name);
  mkdirSync(target, { recursive: true });
  await writeCheckpoint(join(target, 'model'), { ...model, carry: directory });
  const computed = await outputs(model, sequences);
  const tensors = sequences.flatMap((tokens, i) => [
    { name: `tokens.${i}`, shape: [tokens.length], data: Float32Array.from(tokens) },
    { name: `logits.${i}`, shape: [tokens.length, computed[i]!.length / tokens.length], data: computed[i]! },
  ]);
  await writeSafetensors(join(target, 'logits.safetensors'), tensors);
}
