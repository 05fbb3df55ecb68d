import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeAdapter } from '../../nn/checkpoint/adapter.ts';
import { writeCheckpoint } from '../../nn/checkpoint/directory.ts';
import { mergedTensors } from '../../nn/models/lora.ts';
import type { Model } from './model.ts';

/** Where an adapter lies inside the directory of the merged model. */
const ADAPTER_DIRECTORY = 'adapter';

/**
 * Writes the model as a Hugging Face checkpoint, whole or not at all. A model with an adapter is written merged, and the
 * adapter in the layout of PEFT into the folder `adapter` of the same directory.
 */
export async function exportModel(directory: string, model: Model): Promise<void> {
  const { rawConfig, layout, weights, adapter, baseDigest: digest } = model;
  const carry = model.directory;
  if (adapter === undefined || digest === undefined)
    return writeCheckpoint(directory, { rawConfig, layout, weights, carry });
  const { base } = adapter;
  await writeCheckpoint(directory, {
    rawConfig,
    layout: base.layout,
    weights: mergedTensors(adapter, weights, base.weights),
    carry,
    beside: async temporary => {
      const target = join(temporary, ADAPTER_DIRECTORY);
      await mkdir(target);
      await writeAdapter(target, { adapter, weights, base, digest });
    },
  });
}
