import { describe, expect, it } from 'vitest';
import { decoderConfig } from './families.ts';
import { initialise, parameterCount, parameterLayout, tensorPlaces, view } from './parameters.ts';

const config = decoderConfig({
  architectures: ['Qwen2ForCausalLM'],
  model_type: 'qwen2',
  vocab_size: 300,
  hidden_size: 24,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 8,
  intermediate_size: 40,
  max_position_embeddings: 64,
});
const layout = parameterLayout(config);

describe('parameterLayout', () => {
  it('lies in one array without gaps', () => {
    let end = 0;
    for (const { offset, size, shape } of layout) {
      expect(offset).toBe(end);
      expect(size).toBe(shape.reduce((a, b) => a * b, 1));
      end += size;
    }
    expect(parameterCount(layout)).toBe(end);
  });

  it('fuses what reads the same input', () => {
    const qkv = layout.find(parameter => parameter.name === 'layers.1.qkv')!;
    expect(qkv.shape).toEqual([(4 + 2 * 2) * 8, 24]);
    expect(qkv.parts).toEqual([
      { tensor: 'model.layers.1.self_attn.q_proj.weight', rows: 32 },
      { tensor: 'model.layers.1.self_attn.k_proj.weight', rows: 16 },
      { tensor: 'model.layers.1.self_attn.v_proj.weight', rows: 16 },
    ]);
    expect(layout.find(parameter => parameter.name === 'layers.0.gate_up')!.shape).toEqual([80, 24]);
    expect(layout.find(parameter => parameter.name === 'layers.0.qkv_bias')!.shape).toEqual([64]);
  });

  it('drops the output projection when it is tied and the biases where there are none', () => {
    expect(layout.some(parameter => parameter.name === 'lm_head')).toBe(true);
    const plain = parameterLayout({ ...config, tied: true, biases: { qkv: false, output: false, mlp: false } }).map(
      parameter => parameter.name,
    );
    expect(plain.filter(name => name === 'lm_head' || name.endsWith('bias'))).toEqual([]);
  });

  it('stacks the norms of queries and keys, and reads fused tensors whole', () => {
    const parts = (name: string) =>
      parameterLayout({ ...config, qkNorm: true, fusedTensors: true }).find(parameter => parameter.name === name)!
        .parts;
    expect(parts('layers.1.qk_norm')).toEqual([
      { tensor: 'model.layers.1.self_attn.q_norm.weight', rows: 8 },
      { tensor: 'model.layers.1.self_attn.k_norm.weight', rows: 8 },
    ]);
    expect(parts('layers.0.qkv')[0]).toEqual({ tensor: 'model.layers.0.self_attn.qkv_proj.weight', rows: 64 });
    expect(parts('layers.0.gate_up')).toEqual([{ tensor: 'model.layers.0.mlp.gate_up_proj.weight', rows: 80 }]);
  });

  it('names the norms around the blocks of Gemma as its checkpoints do', () => {
    const norms = parameterLayout({ ...config, sandwichNorms: true }).filter(({ name }) =>
      /^layers.0.*norm$/.test(name),
    );
    expect(norms.map(({ name, parts }) => [name, parts[0]!.tensor.split('.')[3]])).toEqual([
      ['layers.0.input_norm', 'input_layernorm'],
      ['layers.0.attention_out_norm', 'post_attention_layernorm'],
      ['layers.0.mlp_norm', 'pre_feedforward_layernorm'],
      ['layers.0.mlp_out_norm', 'post_feedforward_layernorm'],
    ]);
  });

  it('has a value head in the place of the vocabulary projection', () => {
    const last = parameterLayout({ ...config, head: 'score' }).at(-1)!;
    expect(last).toMatchObject({ name: 'score', shape: [1, 24], parts: [{ tensor: 'score.weight', rows: 1 }] });
  });

  it('decays matrices only, where decay is selective', () => {
    const spared = new Set(layout.filter(({ decay }) => !decay).map(({ name }) => name.replace(/\d/, 'i')));
    expect([...spared]).toEqual(['layers.i.input_norm', 'layers.i.qkv_bias', 'layers.i.mlp_norm', 'norm']);
  });
});

describe('tensorPlaces', () => {
  it('covers the flat array in order', () => {
    let end = 0;
    for (const { offset, size, shape } of tensorPlaces(layout)) {
      expect(offset).toBe(end);
      expect(size).toBe(shape.reduce((a, b) => a * b, 1));
      end += size;
    }
    expect(end).toBe(parameterCount(layout));
  });
});

describe('initialise', () => {
  const weights = initialise(config, layout, 7);

  it('draws the same weights from the same seed and others from another', () => {
    expect(initialise(config, layout, 7)).toEqual(weights);
    expect(initialise(config, layout, 8)).not.toEqual(weights);
  });

  it('sets norms of Gemma, whose weights are stored less 1, to 0', () => {
    const weights = initialise({ ...config, normOffset: 1 }, layout, 7);
    expect(view(weights, layout.find(({ name }) => name === 'norm')!).every(value => value === 0)).toBe(true);
  });

  it('sets norms to 1 and biases to 0', () => {
    for (const parameter of layout.filter(({ shape }) => shape.length === 1)) {
      const expected = parameter.name.endsWith('bias') ? 0 : 1;
      expect(view(weights, parameter).every(value => value === expected)).toBe(true);
    }
  });

  it('draws matrices from a normal distribution with the standard deviation of the config', () => {
    const values = view(weights, layout[0]!);
    const moment = (power: number) => values.reduce((sum, value) => sum + (value / 0.02) ** power, 0) / values.length;
    // Standard errors of the moments of n = 7200 standard normal draws: 1, 2, 15 and 96 / n, square root. Five of them.
    expect(Math.abs(moment(1))).toBeLessThan(5 * Math.sqrt(1 / values.length));
    expect(Math.abs(moment(2) - 1)).toBeLessThan(5 * Math.sqrt(2 / values.length));
    expect(Math.abs(moment(3))).toBeLessThan(5 * Math.sqrt(15 / values.length));
    expect(Math.abs(moment(4) - 3)).toBeLessThan(5 * Math.sqrt(96 / values.length));
  });
});
