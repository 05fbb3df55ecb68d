import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { adapterSettings, readAdapter, writeAdapter } from '../../nn/checkpoint/adapter.ts';
import { readConfig, writeCheckpoint } from '../../nn/checkpoint/directory.ts';
import { checkMemory } from '../../nn/checkpoint/memory.ts';
import { mergedTensors } from '../../nn/models/lora.ts';
import type { Model } from './model.ts';
import { openModel } from './open-model.ts';

/** Where an adapter lies inside the directory of the merged model. */
const ADAPTER_DIRECTORY = 'adapter';

/**
 * Writes the model as a Hugging Face checkpoint, whole or not at all. A model with an adapter is written merged, and the
 * adapter in the layout of PEFT, in float32 always, into the folder `adapter` of the same directory.
 */
export async function exportModel(
  directory: string,
  model: Model,
  saveDtype: 'float32' | 'bfloat16' = 'float32',
): Promise<void> {
  const { rawConfig, layout, weights, adapter, baseDigest: digest } = model;
  const shared = { rawConfig, carry: model.directory, dtype: saveDtype === 'bfloat16' ? 'BF16' : 'F32' } as const;
  if (adapter === undefined || digest === undefined) {
    return writeCheckpoint(directory, { ...shared, layout, weights });
  }
  const { base } = adapter;
  const beside = async (temporary: string) => {
    const target = join(temporary, ADAPTER_DIRECTORY);
    await mkdir(target);
    await writeAdapter(target, { adapter, weights, base, digest });
  };
  await model.readBase(read =>
    writeCheckpoint(directory, {
      ...shared,
      layout: base.layout,
      weights: mergedTensors(adapter, weights, read),
      beside,
    }),
  );
}

/** Writes the model with an adapter merged into it as a checkpoint, whole or not at all. Paths are of directories. */
export async function mergeAdapter(parts: {
  readonly model: string;
  readonly adapter: string;
  readonly output: string;
  /** Default F32. */
  readonly dtype?: 'F32' | 'BF16';
}): Promise<void> {
  const { model: directory, dtype = 'F32' } = parts;
  if (resolve(parts.output) === resolve(directory)) {
    throw new Error(`${parts.output}: the merged model would replace its base; choose another directory`);
  }
  const { lora, hasHead } = adapterSettings(parts.adapter);
  checkMemory(readConfig(directory).config, { training: false, maxTokens: 0, lora }, directory);
  const { rawConfig, layout, weights: base } = openModel(directory, { head: hasHead ? 'score' : undefined });
  const { adapter, weights } = readAdapter(parts.adapter, { directory, layout, weights: base });
  const merged = mergedTensors(adapter, weights, base);
  await writeCheckpoint(parts.output, { rawConfig, layout, weights: merged, carry: directory, dtype });
}
