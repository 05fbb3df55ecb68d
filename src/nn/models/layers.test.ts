import { describe, expect, it } from 'vitest';
import { decoderConfig } from './families.ts';

const base = {
  vocab_size: 48,
  hidden_size: 32,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 8,
  intermediate_size: 40,
  max_position_embeddings: 64,
};
const of = (architecture: string, modelType: string, fields: object = {}) =>
  decoderConfig({ ...base, architectures: [`${architecture}ForCausalLM`], model_type: modelType, ...fields });
const gemma = { query_pre_attn_scalar: 8, attn_logit_softcapping: null, final_logit_softcapping: null };

/** Windows layer by layer. */
const windows = ({ layerKinds, windows }: ReturnType<typeof of>) => layerKinds.map(({ window }) => windows[window]);
const ropes = ({ layerKinds }: ReturnType<typeof of>) => layerKinds.map(({ rope }) => rope);

describe('windows', () => {
  it('are on every layer of Mistral and Phi-3', () => {
    expect(windows(of('Mistral', 'mistral', { sliding_window: 16 }))).toEqual([16, 16, 16, 16]);
    expect(windows(of('Mistral', 'mistral', { sliding_window: null }))).toEqual([null, null, null, null]);
    const phi = of('Phi3', 'phi3', { sliding_window: 9 });
    expect(windows(phi)).toEqual([9, 9, 9, 9]);
    expect(phi.windows).toEqual([9]);
  });

  it('are none where no sequence can outgrow them', () => {
    expect(of('Mistral', 'mistral', { sliding_window: 64 }).windows).toEqual([null]);
    expect(of('Mistral', 'mistral', { sliding_window: 63 }).windows).toEqual([63]);
  });

  it('are switched on from a layer of Qwen upwards', () => {
    const fields = { sliding_window: 16, max_window_layers: 3 };
    for (const [architecture, type] of [['Qwen2', 'qwen2'] as const, ['Qwen3', 'qwen3'] as const]) {
      expect(of(architecture, type, fields).windows).toEqual([null]);
      expect(windows(of(architecture, type, { ...fields, use_sliding_window: true }))).toEqual([null, null, null, 16]);
    }
  });

  it('alternate in Gemma', () => {
    const two = of('Gemma2', 'gemma2', { ...gemma, sliding_window: 16 });
    expect(windows(two)).toEqual([16, null, 16, null]);
    expect(two.windows).toEqual([16, null]);
    const three = { ...gemma, sliding_window: 16, sliding_window_pattern: 3 };
    expect(windows(of('Gemma3', 'gemma3_text', three))).toEqual([16, 16, null, 16]);
    expect(windows(of('Gemma3', 'gemma3_text', { ...gemma, sliding_window: 16 }))).toEqual([16, 16, 16, 16]);
  });

  it('follow layer_types where they are given', () => {
    const types = ['full_attention', 'sliding_attention', 'full_attention', 'full_attention'];
    expect(windows(of('Gemma2', 'gemma2', { ...gemma, sliding_window: 16, layer_types: types }))).toEqual([
      null,
      16,
      null,
      null,
    ]);
    expect(windows(of('Qwen2', 'qwen2', { layer_types: Array(4).fill('full_attention') }))).toEqual(
      Array(4).fill(null),
    );
  });
});

describe('ropes', () => {
  it('are left out of layers of SmolLM3', () => {
    expect(ropes(of('SmolLM3', 'smollm3'))).toEqual([0, 0, 0, null]);
    expect(ropes(of('SmolLM3', 'smollm3', { no_rope_layer_interval: 2 }))).toEqual([0, null, 0, null]);
    expect(ropes(of('SmolLM3', 'smollm3', { no_rope_layers: [0, 0, 1, 1, 0] }))).toEqual([null, null, 0, 0]);
    const none = of('SmolLM3', 'smollm3', { no_rope_layers: [0, 0, 0, 0] });
    expect([none.ropes, ropes(none)]).toEqual([[], [null, null, null, null]]);
  });

  it('have a base for each kind of layer of Gemma 3, as either version of Transformers writes it', () => {
    const types = ['sliding_attention', 'full_attention', 'full_attention', 'sliding_attention'];
    const fields = { ...gemma, sliding_window: 16, layer_types: types };
    const five = {
      full_attention: { rope_type: 'linear', factor: 8, rope_theta: 10_000 },
      sliding_attention: { rope_type: 'default', rope_theta: 100 },
    };
    const four = { rope_theta: 10_000, rope_local_base_freq: 100, rope_scaling: { rope_type: 'linear', factor: 8 } };
    const configs = [{ rope_parameters: five }, four].map(rope => of('Gemma3', 'gemma3_text', { ...fields, ...rope }));
    expect(configs[1]).toEqual(configs[0]);
    expect(ropes(configs[0]!)).toEqual([0, 1, 1, 0]);
    expect(configs[0]!.ropes.map(({ frequencies }) => frequencies[2])).toEqual([100 ** -0.5, 10_000 ** -0.5 / 8]);
  });

  it('end the sequence where the frequencies would change with its length', () => {
    const scaling = { type: 'su', short_factor: [1, 1, 1, 1], long_factor: [2, 2, 2, 2] };
    const phi = of('Phi3', 'phi3', { original_max_position_embeddings: 16, rope_scaling: scaling, sliding_window: 16 });
    expect([phi.maxPositions, phi.windows]).toEqual([16, [null]]);
  });
});
