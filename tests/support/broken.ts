import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SafetensorsFile, type TensorData, writeSafetensors } from '../../src/nn/checkpoint/safetensors.ts';

/** Makes broken copies of a checkpoint directory. */

/** A copy of `source` beside it under `name`, changed by `change`. */
export async function brokenCopy(
  source: string,
  name: string,
  change: (directory: string) => void | Promise<void>,
): Promise<void> {
  const copy = join(source, '..', name);
  cpSync(source, copy, { recursive: true });
  await change(copy);
}

/** Changes fields of config.json. */
export const config = (fields: Readonly<Record<string, unknown>>) => (directory: string) => {
  const path = join(directory, 'config.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...fields }));
};

/** Changes the tensors of model.safetensors. */
export const tensors = (change: (tensors: TensorData[]) => TensorData[]) => async (directory: string) => {
  const path = join(directory, 'model.safetensors');
  const file = new SafetensorsFile(path);
  const all = [...file.tensors.values()].map(({ name, shape }) => ({ name, shape, data: file.readTensor(name) }));
  file.close();
  await writeSafetensors(path, change(all));
};

/** Changes the bytes of model.safetensors. */
export const bytes = (change: (bytes: Buffer) => Buffer) => (directory: string) => {
  const path = join(directory, 'model.safetensors');
  writeFileSync(path, change(readFileSync(path)));
};
