/**
 * Writes every golden decoder, its weights moved a little as training would, with the logits computed for it, so that
 * check_export.py can load them in Transformers; the same with a LoRA adapter, merged and for PEFT.
 *
 * Usage:  npx tsx tools/golden/export.ts <directory>
 *         for m in <directory>/*; do python tools/golden/check_export.py $m/model $m/logits.safetensors
 *           for d in model model/adapter; do python tools/golden/check_export.py $m/lora/$d $m/lora/logits.safetensors; done
 *           python tools/golden/check_bfloat16.py $m/model $m/model-bfloat16
 *         done
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packBatch } from '../../src/engines/onnx/batch.ts';
import { exportModel } from '../../src/engines/onnx/export.ts';
import { Model } from '../../src/engines/onnx/model.ts';
import { packedPositions } from '../../src/engines/onnx/positions.ts';
import { Session } from '../../src/engines/onnx/session.ts';
import { writeSafetensors } from '../../src/nn/checkpoint/safetensors.ts';
import { trainingForm, valueForm } from '../../src/nn/models/decoder.ts';
import { weightInputs } from '../../src/nn/models/weights.ts';
import { emit } from '../../src/nn/onnx.ts';
import { GOLDEN_MODELS, golden, SCORE_MODELS, scoreGolden } from '../../tests/support/goldens.ts';

/** Logits [T, V] of each sequence, or values [T, 1] where the model has a value head. */
async function outputs(model: Model, sequences: readonly (readonly number[])[]): Promise<Float32Array[]> {
  const { config, inputs: layout, adapter } = model;
  const weights = weightInputs(layout, { adapter });
  const result = config.head === 'score' ? valueForm(config, weights) : trainingForm(config, weights).logits;
  const session = await Session.create(emit({ result }), { threads: 2 });
  const all: Float32Array[] = [];
  for (const tokens of sequences) {
    const predict = Uint8Array.from([0, ...tokens.map(() => 1)]);
    const { feeds, symbols, rows } = packBatch([{ tokens: Int32Array.from([...tokens, 0]), predict }], model.config);
    const { targets: _, ...inputs } = feeds;
    const positions = packedPositions(model, rows);
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
const lora = { rank: 3, alpha: 6, targetModules: 'all-linear', seed: 1 } as const;
for (const { name, directory, sequences } of goldens) {
  await write(join(root, name), new Model(directory), 0.01, sequences);
  // Large, so that the adapter changes the logits by far more than the tolerance.
  await write(join(root, name, 'lora'), new Model(directory, undefined, undefined, lora), 0.1, sequences);
}

async function write(target: string, model: Model, step: number, sequences: readonly (readonly number[])[]) {
  model.weights.forEach((weight, i) => {
    model.weights[i] = weight + step * Math.sin(i);
  });
  mkdirSync(target, { recursive: true });
  await exportModel(join(target, 'model'), model);
  await exportModel(join(target, 'model-bfloat16'), model, 'bfloat16');
  const computed = await outputs(model, sequences);
  const tensors = sequences.flatMap((tokens, i) => [
    { name: `tokens.${i}`, shape: [tokens.length], data: Float32Array.from(tokens) },
    { name: `logits.${i}`, shape: [tokens.length, computed[i]!.length / tokens.length], data: computed[i]! },
  ]);
  await writeSafetensors(join(target, 'logits.safetensors'), tensors);
}
