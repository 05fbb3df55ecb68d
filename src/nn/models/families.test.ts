import { describe, expect, it } from 'vitest';
import { ARCHITECTURES, decoderConfig } from './families.ts';

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

describe('decoderConfig', () => {
  it('fills what may be left out as Transformers does', () => {
    expect(decoderConfig(llama)).toEqual({
      architecture: 'LlamaForCausalLM',
      vocabSize: 48,
      hiddenSize: 32,
      layers: 2,
      heads: 4,
      kvHeads: 4,
      headDim: 8,
      intermediateSize: 40,
      rmsNormEps: 1e-6,
      ropeTheta: 10000,
      maxPositions: 64,
      tied: false,
      attentionBias: false,
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
    expect(decoderConfig({ ...llama, ...fields }).ropeTheta).toBe(500);
  });

  it('knows which architectures have biases', () => {
    expect([llama, mistral, qwen2].map(raw => decoderConfig(raw).attentionBias)).toEqual([false, false, true]);
  });

  it('accepts a window that no sequence can outgrow, and one that is switched off', () => {
    expect(decoderConfig({ ...mistral, sliding_window: 64 }).maxPositions).toBe(64);
    expect(decoderConfig({ ...qwen2, sliding_window: 16, use_sliding_window: false }).maxPositions).toBe(64);
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
    ['scaled rotary embeddings', { ...llama, rope_parameters: { rope_theta: 1e4, rope_type: 'yarn' } }, '"yarn"'],
    ['older scaling', { ...llama, rope_scaling: { type: 'linear', factor: 2 } }, 'rope_scaling.type is "linear"'],
    ['a factor', { ...llama, rope_parameters: { rope_type: 'default', factor: 8 } }, 'rope_parameters.factor is 8'],
    ['a bad base', { ...llama, rope_parameters: { rope_theta: '1e4' } }, 'rope_theta is "1e4"'],
    ['an activation', { ...llama, hidden_act: 'gelu' }, 'hidden_act is "gelu", which is not supported'],
    ['attention biases of Llama', { ...llama, attention_bias: true }, 'attention_bias is true'],
    ['biases of the feed-forward block', { ...llama, mlp_bias: true }, 'mlp_bias is true'],
    ['dropout', { ...llama, attention_dropout: 0.1 }, 'attention_dropout is 0.1'],
    ['quantised weights', { ...llama, quantization_config: { bits: 4 } }, 'quantization_config is {"bits":4}'],
    ['a sliding window', { ...mistral, sliding_window: 16 }, 'sliding_window is 16, which is not supported; lower max'],
    ['a window switched on', { ...qwen2, sliding_window: 16, use_sliding_window: true }, 'sliding_window is 16'],
    ['sliding layers', { ...qwen2, layer_types: ['full_attention', 'sliding_attention'] }, 'layer_types is ['],
    ['another model type', { ...llama, model_type: 'mistral' }, 'model_type is "mistral"'],
    ['heads that do not divide', { ...llama, num_key_value_heads: 3 }, 'not a multiple of num_key_value_heads 3'],
    ['an odd head', { ...llama, head_dim: 5 }, 'rotary embeddings need an even integer'],
    ['hidden size and heads of Llama', { ...llama, num_attention_heads: 5 }, 'hidden_size 32 is not a multiple'],
  ])('refuses %s', (_, raw, message) => {
    expect(() => decoderConfig(raw)).toThrow(message);
  });
});
