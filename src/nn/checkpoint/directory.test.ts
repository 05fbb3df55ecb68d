import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parameterCount, tensorPlaces } from '../models/parameters.ts';
import { openCheckpoint, writeCheckpoint } from './directory.ts';
import { SafetensorsFile, type TensorData, writeSafetensors } from './safetensors.ts';

const goldens = fileURLToPath(new URL('../../../tests/goldens/decoders/', import.meta.url));
const models = readdirSync(goldens);

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-checkpoint-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** A copy of a golden checkpoint that a test may damage. */
function copyOf(model: string): string {
  const directory = join(root, model);
  cpSync(join(goldens, model), directory, { recursive: true });
  return directory;
}

async function editTensors(directory: string, edit: (tensors: TensorData[]) => TensorData[]): Promise<string> {
  const path = join(directory, 'model.safetensors');
  const file = new SafetensorsFile(path);
  const tensors = [...file.tensors.values()].map(({ name, shape }) => ({ name, shape, data: file.readTensor(name) }));
  file.close();
  await writeSafetensors(path, edit(tensors));
  return path;
}

function editConfig(directory: string, fields: object): void {
  const path = join(directory, 'config.json');
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...fields }));
}

describe.each(models)('the checkpoint %s of Transformers', model => {
  it('is read, every tensor in its place', () => {
    const { weights, layout, files } = openCheckpoint(join(goldens, model));
    expect(weights).toHaveLength(parameterCount(layout));
    expect(files).toHaveLength(model === 'full-untied-sharded' ? 3 : 1);
    const stored = new Map<string, Float32Array>();
    for (const path of files) {
      const file = new SafetensorsFile(path);
      for (const name of file.tensors.keys()) stored.set(name, file.readTensor(name));
      file.close();
    }
    for (const { tensor, offset, size } of tensorPlaces(layout)) {
      expect(weights.subarray(offset, offset + size)).toEqual(stored.get(tensor));
      stored.delete(tensor);
    }
    expect([...stored.keys()]).toEqual([]);
  });

  it('is the same after it was written and read again', async () => {
    const checkpoint = openCheckpoint(join(goldens, model));
    const directory = join(root, 'written');
    await writeCheckpoint(directory, checkpoint);
    const again = openCheckpoint(directory);
    expect(again.config).toEqual(checkpoint.config);
    expect(again.rawConfig).toEqual({ ...checkpoint.rawConfig, dtype: 'float32' });
    expect(again.weights).toEqual(checkpoint.weights);
    expect(readdirSync(directory).sort()).toEqual(['config.json', 'model.safetensors']);
  });
});

describe('writeCheckpoint', () => {
  it('carries along what belongs to the model, and nothing else', async () => {
    const source = copyOf('mistral');
    const companions = ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja', 'generation_config.json'];
    for (const name of [...companions, 'special_tokens_map.json']) writeFileSync(join(source, name), `{"${name}":1}`);
    const directory = join(root, 'written');
    await writeCheckpoint(directory, { ...openCheckpoint(source), carry: source });
    const expected = ['config.json', 'model.safetensors', 'special_tokens_map.json', ...companions];
    expect(readdirSync(directory).sort()).toEqual(expected.sort());
    expect(readFileSync(join(directory, 'chat_template.jinja'), 'utf8')).toBe('{"chat_template.jinja":1}');
  });

  it('keeps decimal points where Transformers insists on them', async () => {
    const checkpoint = openCheckpoint(join(goldens, 'gemma2'));
    const directory = join(root, 'written');
    await writeCheckpoint(directory, { ...checkpoint, rawConfig: { ...checkpoint.rawConfig, initializer_range: 1 } });
    const lines = readFileSync(join(directory, 'config.json'), 'utf8').split('\n');
    expect(lines.filter(line => /softcapping|initializer/.test(line))).toEqual([
      '  "attn_logit_softcapping": 2.0,',
      '  "final_logit_softcapping": 3.0,',
      '  "initializer_range": 1.0,',
    ]);
  });

  it('replaces the directory that it carries from', async () => {
    const directory = copyOf('mistral');
    writeFileSync(join(directory, 'tokenizer.json'), '{}');
    const checkpoint = openCheckpoint(directory);
    await writeCheckpoint(directory, { ...checkpoint, weights: checkpoint.weights.map(w => 2 * w), carry: directory });
    expect(openCheckpoint(directory).weights[5]).toBe(2 * checkpoint.weights[5]!);
    expect(readdirSync(directory).sort()).toEqual(['config.json', 'model.safetensors', 'tokenizer.json']);
  });

  it('does not replace a directory that is no checkpoint', async () => {
    const checkpoint = openCheckpoint(join(goldens, 'mistral'));
    writeFileSync(join(root, 'thesis.txt'), '');
    await expect(writeCheckpoint(root, checkpoint)).rejects.toThrow(
      `${root}: holds files (thesis.txt) but no checkpoint`,
    );
    expect(readdirSync(root)).toEqual(['thesis.txt']);
  });

  it('halves the file in BF16, which keeps BF16 weights exactly', async () => {
    const checkpoint = openCheckpoint(join(goldens, 'wide-heads-bf16'));
    const directory = join(root, 'written');
    await writeCheckpoint(directory, { ...checkpoint, dtype: 'BF16' });
    const again = openCheckpoint(directory);
    expect(again.weights).toEqual(checkpoint.weights);
    expect(again.rawConfig.dtype).toBe('bfloat16');
  });
});

describe('openCheckpoint', () => {
  it('names a missing tensor and its file', async () => {
    const directory = copyOf('mistral');
    const file = await editTensors(directory, tensors => tensors.filter(({ name }) => name !== 'model.norm.weight'));
    expect(() => openCheckpoint(directory)).toThrow(`${file}: tensor model.norm.weight is missing`);
  });

  it('names both shapes of a tensor that does not fit', async () => {
    const directory = copyOf('mistral');
    editConfig(directory, { intermediate_size: 24 });
    const message =
      /model\.safetensors: tensor model\.layers\.0\.mlp\.gate_proj\.weight has shape \[32,16\], config\.json asks for \[24,16\]/;
    expect(() => openCheckpoint(directory)).toThrow(message);
  });

  it('says when it is the vocabulary that does not fit', () => {
    const directory = copyOf('mistral');
    editConfig(directory, { vocab_size: 31 });
    expect(() => openCheckpoint(directory)).toThrow('has shape [32,16], config.json asks for [31,16] (vocab_size 31)');
  });

  it('names tensors that the config does not know', () => {
    const directory = copyOf('mistral');
    editConfig(directory, { num_hidden_layers: 1 });
    expect(() => openCheckpoint(directory)).toThrow(
      /model\.safetensors: tensors model\.layers\.1\.\S+, \S+, \S+ \(and 6 more\) are unexpected/,
    );
  });

  it('accepts the output projection of a tied checkpoint if it is the embedding', async () => {
    const directory = copyOf('grouped-tied');
    const head = (scale: number) => (tensors: TensorData[]) => {
      const { shape, data } = tensors.find(({ name }) => name === 'model.embed_tokens.weight')!;
      const others = tensors.filter(({ name }) => name !== 'lm_head.weight');
      return [{ name: 'lm_head.weight', shape, data: data.map(value => scale * value) }, ...others];
    };
    const before = openCheckpoint(directory).weights;
    await editTensors(directory, head(1));
    expect(openCheckpoint(directory).weights).toEqual(before);
    await editTensors(directory, head(2));
    expect(() => openCheckpoint(directory)).toThrow('lm_head.weight [40,32] differs from model.embed_tokens.weight');
  });

  it('passes over the rotary frequencies that older checkpoints store', async () => {
    const directory = copyOf('mistral');
    const name = 'model.layers.0.self_attn.rotary_emb.inv_freq';
    await editTensors(directory, tensors => [...tensors, { name, shape: [4], data: new Float32Array(4) }]);
    expect(openCheckpoint(directory).weights).toEqual(openCheckpoint(join(goldens, 'mistral')).weights);
  });

  it('names a truncated file', () => {
    const directory = copyOf('mistral');
    truncateSync(join(directory, 'model.safetensors'), 20_000);
    expect(() => openCheckpoint(directory)).toThrow(/model\.safetensors: tensor "\S+" has data_offsets .* outside/);
  });

  it('names what is missing of a directory', () => {
    expect(() => openCheckpoint(join(root, 'nowhere'))).toThrow(/nowhere\/config\.json: cannot be read \(ENOENT/);
    const directory = copyOf('mistral');
    rmSync(join(directory, 'model.safetensors'));
    expect(() => openCheckpoint(directory)).toThrow(`${directory}: neither model.safetensors nor`);
    writeFileSync(join(directory, 'config.json'), '{');
    expect(() => openCheckpoint(directory)).toThrow('config.json: not JSON');
  });
});

describe('a sharded checkpoint', () => {
  const INDEX = 'model.safetensors.index.json';
  const shard = (i: number) => `model-0000${i}-of-00003.safetensors`;

  function editMap(directory: string, edit: (map: Record<string, string>) => void): void {
    const path = join(directory, INDEX);
    const index = JSON.parse(readFileSync(path, 'utf8'));
    edit(index.weight_map);
    writeFileSync(path, JSON.stringify(index));
  }

  it.each<[string, (directory: string) => void, string]>([
    ['a missing shard', directory => rmSync(join(directory, shard(2))), `${shard(2)}: the shard is missing`],
    [
      'a tensor that is not in its shard',
      directory => editMap(directory, map => Object.assign(map, { 'model.norm.weight': shard(1) })),
      `${shard(1)}: no tensor "model.norm.weight"`,
    ],
    [
      'a tensor that the index leaves out',
      directory => editMap(directory, map => delete map['model.norm.weight']),
      '"model.norm.weight" is not placed there',
    ],
    [
      'a shard elsewhere',
      directory => editMap(directory, map => Object.assign(map, { 'model.norm.weight': '../a.safetensors' })),
      'names the shard "../a.safetensors" outside of its directory',
    ],
    ['an index without a map', directory => writeFileSync(join(directory, INDEX), '{}'), 'weight_map is not a map'],
    ['an index that is no JSON', directory => writeFileSync(join(directory, INDEX), '{'), `${INDEX}: not JSON`],
  ])('with %s is refused', (_, damage, message) => {
    const directory = copyOf('full-untied-sharded');
    damage(directory);
    expect(() => openCheckpoint(directory)).toThrow(message);
  });
});
