import type { HuggingFaceConfig } from './huggingface.ts';

/** How a family reads its `config.json`, and what is fixed for all its checkpoints. */
export interface Family {
  /** Transformers finds the family by it. */
  readonly modelType: string;
  /** Its name with a `score` head; `…ForSequenceClassification` unless given. */
  readonly classifier?: string;
  /** Fields whose absence Transformers fills with a number of one particular checkpoint: here they must be given. */
  readonly required?: readonly (keyof HuggingFaceConfig)[];
  /** What the fields are taken for where they are absent, as in Transformers. */
  readonly tied?: boolean;
  readonly rmsNormEps?: number;
  readonly theta?: number;
  readonly localTheta?: number;
  /** Default: none. `option`: the field `attention_bias` decides, for all four projections. */
  readonly attentionBias?: 'option' | 'qkv';
  /** The field `mlp_bias` decides. */
  readonly mlpBias?: true;
  readonly qkNorm?: true;
  /** Gemma: offset and sandwich norms, scaled embeddings, `query_pre_attn_scalar`, GELU under its own field. */
  readonly gemma?: true;
  /** Which soft caps are read. */
  readonly caps?: readonly ('attn_logit_softcapping' | 'final_logit_softcapping')[];
  readonly fusedTensors?: true;
  readonly partialRotary?: true;
  /** Which layers see only `sliding_window` tokens where `layer_types` does not say so. Default: none. */
  readonly slides?: (config: HuggingFaceConfig, layer: number) => boolean;
  /** `layer_types` is read; otherwise it must say what `slides` does. */
  readonly layerTypes?: true;
  /** `sliding_window` counts only with `use_sliding_window`. */
  readonly windowSwitch?: true;
  /** Which layers rotate queries and keys. Default: all. */
  readonly rotates?: (config: HuggingFaceConfig, layer: number) => boolean;
}

const always = ({ sliding_window: window }: HuggingFaceConfig) => window != null;
const upperLayers = (config: HuggingFaceConfig, layer: number) =>
  config.use_sliding_window === true && config.max_window_layers != null && layer >= config.max_window_layers;
const rotates = ({ no_rope_layers: rotated, no_rope_layer_interval: every }: HuggingFaceConfig, layer: number) =>
  rotated == null ? (layer + 1) % (every ?? 4) !== 0 : rotated[layer] === 1;

export const FAMILIES = {
  LlamaForCausalLM: { modelType: 'llama', attentionBias: 'option', mlpBias: true },
  MistralForCausalLM: {
    modelType: 'mistral',
    required: ['num_key_value_heads', 'sliding_window'],
    slides: always,
  },
  Qwen2ForCausalLM: {
    modelType: 'qwen2',
    required: ['num_key_value_heads'],
    attentionBias: 'qkv',
    slides: upperLayers,
    layerTypes: true,
    windowSwitch: true,
  },
  Qwen3ForCausalLM: {
    modelType: 'qwen3',
    required: ['num_key_value_heads', 'head_dim'],
    attentionBias: 'option',
    qkNorm: true,
    slides: upperLayers,
    layerTypes: true,
    windowSwitch: true,
  },
  SmolLM3ForCausalLM: {
    modelType: 'smollm3',
    required: ['num_key_value_heads'],
    tied: true,
    theta: 2_000_000,
    attentionBias: 'option',
    mlpBias: true,
    slides: (config, layer) => config.use_sliding_window === true && !rotates(config, layer),
    layerTypes: true,
    windowSwitch: true,
    rotates,
  },
  Gemma2ForCausalLM: {
    modelType: 'gemma2',
    required: [
      'num_key_value_heads',
      'head_dim',
      'query_pre_attn_scalar',
      'sliding_window',
      'attn_logit_softcapping',
      'final_logit_softcapping',
    ],
    tied: true,
    attentionBias: 'option',
    gemma: true,
    caps: ['attn_logit_softcapping', 'final_logit_softcapping'],
    slides: (_, layer) => layer % 2 === 0,
    layerTypes: true,
  },
  Gemma3ForCausalLM: {
    modelType: 'gemma3_text',
    classifier: 'Gemma3TextForSequenceClassification',
    required: ['num_key_value_heads', 'head_dim', 'query_pre_attn_scalar', 'sliding_window'],
    tied: true,
    theta: 1_000_000,
    localTheta: 10_000,
    attentionBias: 'option',
    qkNorm: true,
    gemma: true,
    caps: ['final_logit_softcapping'],
    slides: ({ sliding_window_pattern: every }, layer) => (layer + 1) % (every ?? 6) !== 0,
    layerTypes: true,
  },
  Phi3ForCausalLM: {
    modelType: 'phi3',
    rmsNormEps: 1e-5,
    fusedTensors: true,
    partialRotary: true,
    slides: always,
  },
} satisfies Record<string, Family>;

/** Known values of `architectures`. */
export type Architecture = keyof typeof FAMILIES;
export const ARCHITECTURES = Object.keys(FAMILIES) as Architecture[];

/** The name that Transformers gives the family with a `score` head. */
export function classifierName(architecture: Architecture): string {
  const family: Family = FAMILIES[architecture];
  return family.classifier ?? architecture.replace('ForCausalLM', 'ForSequenceClassification');
}
