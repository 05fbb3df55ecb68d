import { describe, expect, it } from 'vitest';
import { ARCHITECTURES } from './architectures.ts';
import { decoderConfig, scoreConfig } from './families.ts';

const llama = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 48,
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  intermediate_size: 40,
  max_position_embeddings: 64,
};
const mistral = {
  ...llama,
  architectures: ['MistralForCausalLM'],
  model_type: 'mistral',
  num_key_value_heads: 2,
  sliding_window: null,
};
const qwen2 = { ...llama, architectures: ['Qwen2ForCausalLM'], model_type: 'qwen2', num_key_value_heads: 2 };
const qwen3 = { ...qwen2, architectures: ['Qwen3ForCausalLM'], model_type: 'qwen3', head_dim: 8 };
const smollm3 = { ...qwen2, architectures: ['SmolLM3ForCausalLM'], model_type: 'smollm3' };
const gemma3 = {
  ...qwen3,
  architectures: ['Gemma3ForCausalLM'],
  model_type: 'gemma3_text',
  query_pre_attn_scalar: 16,
  sliding_window: 12,
};
const gemma2 = {
  ...gemma3,
  architectures: ['Gemma2ForCausalLM'],
  model_type: 'gemma2',
  attn_logit_softcapping: 50,
  final_logit_softcapping: 30,
};
const phi3 = { ...llama, architectures: ['Phi3ForCausalLM'], model_type: 'phi3' };
const longrope = { rope_type: 'longrope', short_factor: [1, 1, 1, 1], long_factor: [2, 2, 2, 2] };

describe('decoderConfig', () => {
  it('fills what may be left out as Transformers does', () => {
    expect(decoderConfig(llama)).toEqual({
      architecture: 'LlamaForCausalLM',
      head: 'lm',
      vocabSize: 48,
      hiddenSize: 32,
      layers: 2,
      heads: 4,
      kvHeads: 4,
      headDim: 8,
      intermediateSize: 40,
      rmsNormEps: 1e-6,
      normOffset: 0,
      sandwichNorms: false,
      qkNorm: false,
      biases: { qkv: false, output: false, mlp: false },
      fusedTensors: false,
      activation: 'silu',
      embeddingScale: 1,
      queryScale: 1 / Math.sqrt(8),
      attentionCap: null,
      logitCap: null,
      ropes: [{ frequencies: [1, 10 ** -1, 10 ** -2, 10 ** -3], scale: 1 }],
      windows: [null],
      layerKinds: [
        { window: 0, rope: 0 },
        { window: 0, rope: 0 },
      ],
      maxPositions: 64,
      tied: false,
      initializerRange: 0.02,
      bosToken: null,
      eosTokens: [],
      padToken: null,
    });
  });

  it('reads every field it is given', () => {
    const config = decoderConfig({
      ...llama,
      num_key_value_heads: 2,
      head_dim: 12,
      rms_norm_eps: 1e-5,
      tie_word_embeddings: true,
      initializer_range: 0.1,
      bos_token_id: 1,
      eos_token_id: [2, 5],
      pad_token_id: 0,
    });
    expect(config).toMatchObject({ kvHeads: 2, headDim: 12, rmsNormEps: 1e-5, tied: true, initializerRange: 0.1 });
    expect(config).toMatchObject({ bosToken: 1, eosTokens: [2, 5], padToken: 0 });
  });

  it.each([
    ['Transformers 5', { rope_parameters: { rope_theta: 500, rope_type: 'default' } }],
    ['Transformers 4', { rope_theta: 500, rope_scaling: null }],
    ['Transformers 4 with a plain type', { rope_theta: 500, rope_scaling: { type: 'default' } }],
  ])('reads the rotary base as %s writes it', (_, fields) => {
    expect(decoderConfig({ ...llama, ...fields }).ropes[0]!.frequencies[2]).toBe(500 ** -0.5);
  });

  it('knows which families have biases, and which read a field', () => {
    const biases = (raw: object) => Object.values(decoderConfig(raw).biases);
    expect([llama, mistral, qwen2, qwen3, gemma2].map(raw => biases(raw)[0])).toEqual([
      false,
      false,
      true,
      false,
      false,
    ]);
    const on = { attention_bias: true };
    expect([llama, qwen3, smollm3, gemma2, gemma3].map(raw => biases({ ...raw, ...on }))).toEqual(
      Array(5).fill([true, true, false]),
    );
    expect(biases({ ...smollm3, mlp_bias: true })).toEqual([false, false, true]);
  });

  it('knows what Gemma does otherwise', () => {
    const scaled = { embeddingScale: Math.sqrt(32), queryScale: 0.25, activation: 'geluTanh' };
    const common = { ...scaled, tied: true, normOffset: 1, sandwichNorms: true };
    expect(decoderConfig(gemma2)).toMatchObject({ ...common, qkNorm: false, attentionCap: 50, logitCap: 30 });
    expect(decoderConfig(gemma3)).toMatchObject({ ...common, qkNorm: true, attentionCap: null, logitCap: null });
    expect(decoderConfig({ ...gemma3, final_logit_softcapping: 20 }).logitCap).toBe(20);
  });

  it('fills defaults that belong to the family', () => {
    expect([llama, phi3].map(raw => decoderConfig(raw).rmsNormEps)).toEqual([1e-6, 1e-5]);
    expect([llama, smollm3].map(raw => decoderConfig(raw).tied)).toEqual([false, true]);
    const base = (raw: object) => decoderConfig(raw).ropes.map(({ frequencies }) => Math.round(frequencies[2]! ** -2));
    expect([llama, smollm3, { ...gemma3, num_hidden_layers: 6 }].map(base)).toEqual([
      [10_000],
      [2_000_000],
      [10_000, 1_000_000],
    ]);
  });

  it('reads a classifier with one label as a value head', () => {
    for (const raw of [llama, mistral, qwen2, qwen3, smollm3, gemma2, gemma3, phi3]) {
      const score = scoreConfig(raw);
      expect(decoderConfig(score)).toEqual({ ...decoderConfig(raw), head: 'score' });
      expect(scoreConfig(score)).toEqual(score);
    }
    expect(scoreConfig(gemma3).architectures).toEqual(['Gemma3TextForSequenceClassification']);
    const two = { ...llama, architectures: ['LlamaForSequenceClassification'] };
    expect(() => decoderConfig(two)).toThrow('the head has 2 outputs');
    expect(() => decoderConfig({ ...two, id2label: { 0: 'a', 1: 'b', 2: 'c' } })).toThrow('the head has 3 outputs');
  });

  it('names an unknown architecture and the known ones', () => {
    const message = `config.json: architectures is ["GPT2LMHeadModel"]; one of ${ARCHITECTURES.join(', ')} is needed`;
    expect(() => decoderConfig({ ...llama, architectures: ['GPT2LMHeadModel'] })).toThrow(message);
    expect(() => decoderConfig({ ...llama, architectures: undefined })).toThrow('architectures is undefined');
    expect(() => decoderConfig({ ...llama, architectures: [] })).toThrow('architectures is []');
    expect(() => decoderConfig([])).toThrow('expected a JSON object, found []');
  });

  it('names every missing and malformed field with its value', () => {
    const raw = { ...llama, vocab_size: -3, hidden_size: '32', intermediate_size: undefined };
    expect(() => decoderConfig(raw, 'model/config.json')).toThrow(
      /^model\/config\.json: vocab_size is -3 .*; hidden_size is "32" .*; intermediate_size is missing/,
    );
    expect(() => decoderConfig({ ...llama, eos_token_id: [2, 'x'] })).toThrow('eos_token_id is [2,"x"]');
    const { num_key_value_heads: _, ...rest } = mistral;
    expect(() => decoderConfig(rest)).toThrow('num_key_value_heads is missing; MistralForCausalLM needs it');
  });

  it.each<[string, object, string]>([
    ['unknown rotary embeddings', { ...llama, rope_parameters: { rope_type: 'axial' } }, 'rope type is "axial"'],
    ['scaling without a factor', { ...llama, rope_scaling: { type: 'linear' } }, 'rope_scaling.factor is undefined'],
    ['a factor', { ...llama, rope_parameters: { rope_type: 'default', factor: 8 } }, 'rope_parameters.factor is 8'],
    ['a bad base', { ...llama, rope_parameters: { rope_theta: '1e4' } }, 'rope_theta is "1e4"'],
    [
      'rope parameters in both places',
      { ...llama, rope_parameters: {}, rope_scaling: { type: 'linear', factor: 2 } },
      'both given',
    ],
    ['rotation of half a head', { ...llama, partial_rotary_factor: 0.5 }, 'a llama model rotates whole heads'],
    [
      'factors of another length',
      { ...phi3, original_max_position_embeddings: 8, rope_scaling: { ...longrope, short_factor: [1] } },
      'short_factor is [1]',
    ],
    [
      'factors without the trained length',
      { ...phi3, rope_scaling: longrope },
      'original_max_position_embeddings is un',
    ],
    [
      'two trained lengths',
      {
        ...phi3,
        original_max_position_embeddings: 32,
        rope_scaling: { ...longrope, original_max_position_embeddings: 16 },
      },
      'original_max_position_embeddings is 32, but 16',
    ],
    ['a base for each layer', { ...llama, rope_parameters: { full_attention: {} } }, 'rope_parameters.full_attention'],
    ['one base for Gemma 3', { ...gemma3, rope_parameters: { rope_theta: 10 } }, 'rope_parameters.rope_theta is 10'],
    ['an activation', { ...llama, hidden_act: 'gelu' }, 'hidden_act is "gelu", which is not supported'],
    ["Gemma's activation", { ...gemma2, hidden_activation: 'relu' }, 'hidden_activation is "relu"'],
    ['attention biases of Mistral', { ...mistral, attention_bias: true }, 'attention_bias is true'],
    ['Qwen 2 without biases', { ...qwen2, attention_bias: false }, 'attention_bias is false'],
    ['biases of the feed-forward block', { ...qwen3, mlp_bias: true }, 'mlp_bias is true'],
    ['dropout', { ...llama, attention_dropout: 0.1 }, 'attention_dropout is 0.1'],
    ['dropout of residuals', { ...phi3, resid_pdrop: 0.1 }, 'resid_pdrop is 0.1'],
    ['quantised weights', { ...llama, quantization_config: { bits: 4 } }, 'quantization_config is {"bits":4}'],
    ['a soft cap', { ...llama, final_logit_softcapping: 30 }, 'final_logit_softcapping is 30'],
    ['a cap that Transformers passes over', { ...gemma3, attn_logit_softcapping: 50 }, 'attn_logit_softcapping is 50'],
    ['a cap of 0', { ...gemma2, attn_logit_softcapping: 0 }, 'attn_logit_softcapping is 0'],
    ['another query scale', { ...llama, query_pre_attn_scalar: 16 }, 'query_pre_attn_scalar is 16'],
    ['Gemma without its query scale', { ...gemma2, query_pre_attn_scalar: null }, 'query_pre_attn_scalar is null'],
    [
      'attention to the future',
      { ...gemma3, use_bidirectional_attention: true },
      'use_bidirectional_attention is true',
    ],
    ['a window of Llama', { ...llama, sliding_window: 16 }, 'sliding_window is 16; a llama model has no window'],
    [
      'layer types against the family',
      { ...mistral, layer_types: Array(2).fill('sliding_attention') },
      'layer_types is [',
    ],
    [
      'sliding layers without a window',
      { ...qwen2, layer_types: Array(2).fill('sliding_attention') },
      'sliding_window is null',
    ],
    ['chunked attention', { ...qwen2, layer_types: Array(2).fill('chunked_attention') }, 'has "chunked_attention"'],
    ['too few layer types', { ...qwen2, layer_types: ['full_attention'] }, 'layer_types has 1 entries for 2 layers'],
    ['layers without positions', { ...llama, no_rope_layers: [1, 0] }, 'no_rope_layers is [1,0]; a llama model'],
    ['too few of them', { ...smollm3, no_rope_layers: [1] }, 'no_rope_layers is [1]; 2 layers need as many'],
    ['another model type', { ...llama, model_type: 'mistral' }, 'model_type is "mistral"'],
    ['heads that do not divide', { ...llama, num_key_value_heads: 3 }, 'not a multiple of num_key_value_heads 3'],
    ['an odd head', { ...llama, head_dim: 5 }, 'rotary embeddings need an even integer'],
    ['hidden size and heads of Llama', { ...llama, num_attention_heads: 5 }, 'hidden_size 32 is not a multiple'],
  ])('refuses %s', (_, raw, message) => {
    expect(() => decoderConfig(raw)).toThrow(message);
  });
});
