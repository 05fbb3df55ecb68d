import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { adapterSettings } from '../../nn/checkpoint/adapter.ts';
import { decode16, encodeBFloat16 } from '../../nn/checkpoint/dtypes.ts';
import { exportModel } from './export.ts';
import { Model } from './model.ts';

const root = mkdtempSync(join(tmpdir(), 'tokenloop-export-'));
afterAll(() => rmSync(root, { recursive: true }));

const rounded = (weights: Float32Array) => {
  const values = new Float32Array(weights.length);
  decode16('BF16', encodeBFloat16(weights), values);
  return values;
};

it('writes float32, and bfloat16 where it is asked for, under the name that Transformers reads', async () => {
  const model = new Model(goldenModel('qwen2'));
  const directory = join(root, 'model');
  for (const dtype of [undefined, 'bfloat16'] as const) {
    await exportModel(directory, model, dtype);
    const config = JSON.parse(readFileSync(join(directory, 'config.json'), 'utf8'));
    expect(config.dtype).toBe(dtype ?? 'float32');
    expect(new Model(directory).weights).toEqual(dtype ? rounded(model.weights) : model.weights);
  }
  expect(rounded(model.weights)).not.toEqual(model.weights);
});

it('rounds the merged model and leaves the adapter exact', async () => {
  const lora = { rank: 2, alpha: 4, targetModules: 'all-linear', seed: 1 } as const;
  const model = new Model(goldenModel('qwen2'), undefined, undefined, lora);
  model.weights.forEach((_, i) => {
    model.weights[i] = 0.1 * Math.sin(i);
  });
  const [exact, directory] = [join(root, 'exact'), join(root, 'rounded')];
  await exportModel(exact, model);
  await exportModel(directory, model, 'bfloat16');
  expect(new Model(directory).weights).toEqual(rounded(new Model(exact).weights));
  const adapter = { directory: join(directory, 'adapter') };
  expect(adapterSettings(adapter.directory).lora.rank).toBe(2);
  expect(new Model(goldenModel('qwen2'), undefined, undefined, adapter).weights).toEqual(model.weights);
});
