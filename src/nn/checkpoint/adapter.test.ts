import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { goldenModel, LORA_CASES, loraGolden } from '../../../tests/support/goldens.ts';
import {
  ADAPTER_CONFIG_FILE,
  ADAPTER_WEIGHTS_FILE,
  type AdapterBase,
  adapterSettings,
  baseDigest,
  readAdapter,
  writeAdapter,
} from './adapter.ts';
import { openCheckpoint } from './directory.ts';
import { SafetensorsFile, type TensorData, writeSafetensors } from './safetensors.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-adapter-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function baseOf(directory: string): AdapterBase {
  const { layout, weights } = openCheckpoint(directory);
  return { directory, layout, weights };
}

async function rewrite(
  directory: string,
  change: (tensors: TensorData[]) => TensorData[],
  metadata?: Record<string, string>,
): Promise<void> {
  const path = join(directory, ADAPTER_WEIGHTS_FILE);
  const file = new SafetensorsFile(path);
  const tensors = [...file.tensors.values()].map(({ name, shape }) => ({ name, shape, data: file.readTensor(name) }));
  file.close();
  await writeSafetensors(path, change(tensors), { metadata: metadata ?? file.metadata });
}

function configure(directory: string, fields: object): void {
  const path = join(directory, ADAPTER_CONFIG_FILE);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...fields }));
}

describe.each(LORA_CASES)('the adapter %s', name => {
  it('is the same after it was written and read', async () => {
    const { directory, base: baseDirectory } = loraGolden(name);
    const base = baseOf(baseDirectory);
    const opened = readAdapter(directory, base);
    await writeAdapter(root, { ...opened, base, digest: baseDigest(base) });
    expect(readAdapter(root, base)).toEqual(opened);
    expect(adapterSettings(root)).toEqual({
      lora: { rank: opened.adapter.rank, alpha: opened.adapter.alpha, targetModules: 'all-linear' },
      hasHead: name === 'score',
    });
    const tensors = (path: string) => {
      const file = new SafetensorsFile(join(path, ADAPTER_WEIGHTS_FILE));
      file.close();
      return [...file.tensors.values()].map(({ name, shape }) => `${name} ${shape}`).toSorted();
    };
    expect(tensors(root)).toEqual(tensors(directory));
  });
});

describe('an adapter for another base', () => {
  const copy = () => {
    const { directory, base } = loraGolden('grouped-all');
    cpSync(directory, root, { recursive: true });
    return baseOf(base);
  };

  it('is refused by a tensor that does not fit', () => {
    copy();
    expect(() => readAdapter(root, baseOf(goldenModel('qwen2')))).toThrow(
      /tensor base_model\.model\.model\.layers\.0\.self_attn\.q_proj\.lora_A\.weight has shape \[3,32\], and \[3,24\] would fit .*qwen2/,
    );
  });

  it('is refused by a module that is not there', () => {
    copy();
    expect(() => readAdapter(root, baseOf(goldenModel('phi3')))).toThrow(
      /target module \w+_proj is not in the model; its linear layers are qkv_proj/,
    );
  });

  it('is refused by a tensor more or less', async () => {
    const base = copy();
    const cut = 'base_model.model.model.layers.1.mlp.up_proj.lora_B.weight';
    await rewrite(root, tensors => tensors.filter(({ name }) => name !== cut));
    expect(() => readAdapter(root, base)).toThrow(`tensor ${cut} is missing; an adapter for the base in`);
    rmSync(root, { recursive: true });
    copy();
    const extra = 'base_model.model.model.embed_tokens.weight';
    await rewrite(root, tensors => [...tensors, { name: extra, shape: [1], data: Float32Array.of(1) }]);
    expect(() => readAdapter(root, base)).toThrow(`tensor ${extra} has no place in the base`);
  });

  it('is refused by the weights it was trained on', async () => {
    const base = copy();
    await rewrite(root, tensors => tensors, { format: 'pt', base_sha256: baseDigest(base) });
    expect(readAdapter(root, base).adapter.rank).toBe(3);
    const other = { ...base, weights: base.weights.with(0, 1) };
    expect(() => readAdapter(root, other)).toThrow(/trained on other weights than those in .*grouped-tied/);
  });

  it('is refused by its name on the hub', () => {
    const base = copy();
    const cached = join(root, 'models--org--small-base', 'snapshots', 'abc');
    mkdirSync(cached, { recursive: true });
    configure(root, { base_model_name_or_path: 'org/large-base' });
    expect(() => readAdapter(root, { ...base, directory: cached })).toThrow(
      /the adapter is for org\/large-base, and the model is org\/small-base/,
    );
    configure(root, { base_model_name_or_path: 'org/small-base' });
    expect(readAdapter(root, { ...base, directory: cached }).adapter.rank).toBe(3);
    // A copy of the base may lie anywhere.
    expect(readAdapter(root, base).adapter.rank).toBe(3);
  });

  it.each([
    [{ peft_type: 'IA3' }, /peft_type is "IA3", which is not implemented/],
    [{ use_dora: true }, /use_dora is true/],
    [{ bias: 'all' }, /bias is "all"/],
    [{ rank_pattern: { q_proj: 4 } }, /rank_pattern is \{"q_proj":4\}/],
    [{ init_lora_weights: 'pissa' }, /init_lora_weights is "pissa"/],
    [{ r: 0 }, /adapter_config\.json: r: /],
    [{ r: undefined }, /adapter_config\.json: r: /],
  ])('is refused with %j', (fields, message) => {
    const base = copy();
    configure(root, fields);
    expect(() => readAdapter(root, base)).toThrow(message);
  });

  it('is refused where there is none', () => {
    const base = copy();
    expect(() => readAdapter(join(root, 'none'), base)).toThrow(/none.adapter_config\.json: no such file/);
    writeFileSync(join(root, ADAPTER_CONFIG_FILE), '{');
    expect(() => readAdapter(root, base)).toThrow(/adapter_config\.json: not JSON/);
  });
});
