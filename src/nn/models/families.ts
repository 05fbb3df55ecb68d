import { z } from 'zod';

/** What differs between decoder checkpoints; everything that a graph or a parameter layout asks about a model. */
export interface DecoderConfig {
  readonly architecture: Architecture;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  /** Query heads; a multiple of `kvHeads`. */
  readonly heads: number;
  readonly kvHeads: number;
  /** Even. `heads * headDim` need not equal `hiddenSize`. */
  readonly headDim: number;
  readonly intermediateSize: number;
  readonly rmsNormEps: number;
  readonly ropeTheta: number;
  /** Longest sequence in tokens. */
  readonly maxPositions: number;
  /** The output projection is the embedding matrix. */
  readonly tied: boolean;
  /** The query, key and value projections add a bias. */
  readonly attentionBias: boolean;
  /** Standard deviation of freshly drawn weights. */
  readonly initializerRange: number;
  readonly bosToken: number | null;
  readonly eosTokens: readonly number[];
  readonly padToken: number | null;
}

/** Known values of `architectures`, each with the `model_type` that Transformers finds it by. */
const MODEL_TYPES = { LlamaForCausalLM: 'llama', MistralForCausalLM: 'mistral', Qwen2ForCausalLM: 'qwen2' } as const;
export type Architecture = keyof typeof MODEL_TYPES;
export const ARCHITECTURES = Object.keys(MODEL_TYPES) as Architecture[];

const size = z.int().positive();
const token = z.int().nonnegative();
/** Transformers 5 writes `rope_parameters`; before, `rope_theta` stood alone and `rope_scaling` was its extension. */
const rope = z.record(z.string(), z.unknown());

const schema = z.object({
  model_type: z.string(),
  vocab_size: size,
  hidden_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  num_key_value_heads: size.nullish(),
  head_dim: size.nullish(),
  intermediate_size: size,
  rms_norm_eps: z.number().positive().default(1e-6),
  max_position_embeddings: size,
  tie_word_embeddings: z.boolean().default(false),
  initializer_range: z.number().positive().default(0.02),
  bos_token_id: token.nullish(),
  eos_token_id: z.union([token, z.array(token)]).nullish(),
  pad_token_id: z.int().nullish(),
  rope_theta: z.number().positive().nullish(),
  rope_parameters: rope.nullish(),
  rope_scaling: rope.nullish(),
  hidden_act: z.string().default('silu'),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  attention_dropout: z.number().nullish(),
  sliding_window: size.nullish(),
  use_sliding_window: z.boolean().nullish(),
  layer_types: z.array(z.string()).nullish(),
  quantization_config: z.unknown().optional(),
});
type HuggingFaceConfig = z.infer<typeof schema>;

/** Fields whose absence Transformers fills with a number that depends on the architecture: here they must be given. */
const REQUIRED: Readonly<Record<Architecture, readonly (keyof HuggingFaceConfig)[]>> = {
  LlamaForCausalLM: [],
  MistralForCausalLM: ['num_key_value_heads', 'sliding_window'],
  Qwen2ForCausalLM: ['num_key_value_heads'],
};

/** The rotary base where neither form of it is given, as in Transformers. */
const DEFAULT_ROPE_THETA = 10_000;

/**
 * Reads the parsed content of a Hugging Face `config.json`. `where` names the file in errors. Throws on a missing or
 * malformed field, on an unknown architecture, and on every setting that would change the model's output and is not
 * implemented: nothing is ignored.
 */
export function decoderConfig(raw: unknown, where = 'config.json'): DecoderConfig {
  const architecture = knownArchitecture(raw, where);
  const parsed = schema.safeParse(raw);
  if (!parsed.success)
    throw new Error(`${where}: ${parsed.error.issues.map(issue => describe(issue, raw)).join('; ')}`);
  const config = parsed.data;
  const absent = REQUIRED[architecture].find(field => config[field] === undefined);
  if (absent !== undefined) throw new Error(`${where}: ${absent} is missing; ${architecture} needs it (null for none)`);
  const ropeTheta = readRope(config, where);
  refuseUnsupported(config, architecture, where);

  const heads = config.num_attention_heads;
  const kvHeads = config.num_key_value_heads ?? heads;
  const headDim = config.head_dim ?? config.hidden_size / heads;
  if (heads % kvHeads !== 0) {
    throw new Error(`${where}: num_attention_heads ${heads} is not a multiple of num_key_value_heads ${kvHeads}`);
  }
  if (architecture === 'LlamaForCausalLM' && config.hidden_size % heads !== 0) {
    // Not needed here, but Transformers would refuse to load what is written.
    throw new Error(`${where}: hidden_size ${config.hidden_size} is not a multiple of num_attention_heads ${heads}`);
  }
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    throw new Error(
      `${where}: head_dim (hidden_size ${config.hidden_size} / num_attention_heads ${heads} if not given) is ${headDim}; rotary embeddings need an even integer`,
    );
  }
  const eos = config.eos_token_id ?? [];
  return {
    architecture,
    vocabSize: config.vocab_size,
    hiddenSize: config.hidden_size,
    layers: config.num_hidden_layers,
    heads,
    kvHeads,
    headDim,
    intermediateSize: config.intermediate_size,
    rmsNormEps: config.rms_norm_eps,
    ropeTheta,
    maxPositions: config.max_position_embeddings,
    tied: config.tie_word_embeddings,
    attentionBias: architecture === 'Qwen2ForCausalLM',
    initializerRange: config.initializer_range,
    bosToken: config.bos_token_id ?? null,
    eosTokens: typeof eos === 'number' ? [eos] : eos,
    padToken: config.pad_token_id ?? null,
  };
}

function knownArchitecture(raw: unknown, where: string): Architecture {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new Error(`${where}: expected a JSON object, found ${JSON.stringify(raw)}`);
  }
  const named = (raw as { architectures?: unknown }).architectures;
  const name = Array.isArray(named) && named.length === 1 ? named[0] : named;
  const found = ARCHITECTURES.find(known => known === name);
  if (found === undefined) {
    throw new Error(
      `${where}: architectures is ${JSON.stringify(named)}; one of ${ARCHITECTURES.join(', ')} is needed`,
    );
  }
  return found;
}

function describe(issue: z.core.$ZodIssue, raw: unknown): string {
  let value: unknown = raw;
  for (const key of issue.path) value = (value as Record<PropertyKey, unknown> | undefined)?.[key];
  const what = value === undefined ? 'is missing' : `is ${JSON.stringify(value)}`;
  return `${issue.path.join('.')} ${what} (${issue.message})`;
}

function readRope(config: HuggingFaceConfig, where: string): number {
  for (const field of ['rope_parameters', 'rope_scaling'] as const) {
    for (const [key, value] of Object.entries(config[field] ?? {})) {
      const plain =
        value === null ||
        (field === 'rope_parameters' && key === 'rope_theta') ||
        ((key === 'rope_type' || key === 'type') && value === 'default') ||
        (key === 'partial_rotary_factor' && value === 1);
      if (plain) continue;
      throw new Error(
        `${where}: ${field}.${key} is ${JSON.stringify(value)}; only unscaled rotary embeddings (rope_type "default") are supported`,
      );
    }
  }
  const theta = config.rope_parameters?.rope_theta ?? config.rope_theta ?? DEFAULT_ROPE_THETA;
  if (typeof theta !== 'number' || !(theta > 0)) {
    throw new Error(`${where}: rope_parameters.rope_theta is ${JSON.stringify(theta)}; expected a number above 0`);
  }
  return theta;
}

function refuseUnsupported(config: HuggingFaceConfig, architecture: Architecture, where: string): void {
  const refuse = (field: keyof HuggingFaceConfig, remedy: string) => {
    throw new Error(`${where}: ${field} is ${JSON.stringify(config[field])}, which is not supported; ${remedy}`);
  };
  if (config.model_type !== MODEL_TYPES[architecture]) {
    refuse('model_type', `${architecture} needs ${JSON.stringify(MODEL_TYPES[architecture])}`);
  }
  if (config.hidden_act !== 'silu' && config.hidden_act !== 'swish') {
    refuse('hidden_act', 'only "silu" is');
  }
  if (architecture === 'LlamaForCausalLM' && config.attention_bias) {
    refuse('attention_bias', 'use a checkpoint without it (Qwen2ForCausalLM has biases on q, k and v)');
  }
  if (config.mlp_bias) refuse('mlp_bias', 'use a checkpoint without it');
  if (config.attention_dropout) refuse('attention_dropout', 'set it to 0');
  if (config.quantization_config != null) {
    refuse('quantization_config', 'use the F32, F16 or BF16 checkpoint it was made from');
  }
  const window = architecture === 'Qwen2ForCausalLM' && !config.use_sliding_window ? null : config.sliding_window;
  if (window != null && window < config.max_position_embeddings) {
    refuse('sliding_window', `lower max_position_embeddings to ${window}: up to there attention is the same`);
  }
  if (config.layer_types?.some(type => type !== 'full_attention')) {
    refuse('layer_types', 'only "full_attention" is');
  }
}
