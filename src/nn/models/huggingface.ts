import { z } from 'zod';

/** The fields of a Hugging Face `config.json` that say something about a decoder's outputs. */

const size = z.int().positive();
// Far above any model: what is derived from them element by element must stay small, whatever a file says.
const layers = size.max(1000);
const width = size.max(2 ** 20);
const rows = size.max(2 ** 24);
const token = z.int().nonnegative();
const cap = z.number().positive().nullish();
const rope = z.record(z.string(), z.unknown()).nullish();

const schema = z.object({
  model_type: z.string(),
  vocab_size: rows,
  hidden_size: width,
  num_hidden_layers: layers,
  num_attention_heads: width,
  num_key_value_heads: width.nullish(),
  head_dim: width.nullish(),
  intermediate_size: rows,
  rms_norm_eps: z.number().positive().optional(),
  max_position_embeddings: size,
  tie_word_embeddings: z.boolean().optional(),
  initializer_range: z.number().positive().default(0.02),
  bos_token_id: token.nullish(),
  eos_token_id: z.union([token, z.array(token)]).nullish(),
  pad_token_id: z.int().nullish(),
  /** Transformers 5 writes `rope_parameters`; before, `rope_theta` stood alone and `rope_scaling` was its extension. */
  rope_parameters: rope,
  rope_theta: z.number().positive().nullish(),
  rope_local_base_freq: z.number().positive().nullish(),
  rope_scaling: rope,
  partial_rotary_factor: z.number().positive().nullish(),
  original_max_position_embeddings: size.nullish(),
  no_rope_layers: z.array(z.union([z.literal(0), z.literal(1)])).nullish(),
  no_rope_layer_interval: size.nullish(),
  sliding_window: size.nullish(),
  use_sliding_window: z.boolean().nullish(),
  max_window_layers: z.int().nonnegative().nullish(),
  sliding_window_pattern: size.nullish(),
  layer_types: z.array(z.string()).nullish(),
  use_bidirectional_attention: z.boolean().nullish(),
  query_pre_attn_scalar: z.number().positive().nullish(),
  attn_logit_softcapping: cap,
  final_logit_softcapping: cap,
  hidden_act: z.string().nullish(),
  hidden_activation: z.string().nullish(),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  attention_dropout: z.number().nullish(),
  resid_pdrop: z.number().nullish(),
  embd_pdrop: z.number().nullish(),
  num_labels: size.nullish(),
  id2label: z.record(z.string(), z.unknown()).nullish(),
  quantization_config: z.unknown().optional(),
});

export type HuggingFaceConfig = z.infer<typeof schema>;

/** Checks types only; throws an error that names every bad field with its value. */
export function parseConfig(raw: unknown, where: string): HuggingFaceConfig {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw new Error(`${where}: ${parsed.error.issues.map(issue => describe(issue, raw)).join('; ')}`);
}

function describe(issue: z.core.$ZodIssue, raw: unknown): string {
  let value: unknown = raw;
  for (const key of issue.path) value = (value as Record<PropertyKey, unknown> | undefined)?.[key];
  const what = value === undefined ? 'is missing' : `is ${JSON.stringify(value)}`;
  return `${issue.path.join('.')} ${what} (${issue.message})`;
}

/** Fields in which Transformers refuses an integer. */
const FLOATS = ['rms_norm_eps', 'initializer_range', 'attn_logit_softcapping', 'final_logit_softcapping'];
const INTEGER_IN_FLOAT = new RegExp(`^(  "(?:${FLOATS.join('|')})": \\d+)(?=,?$)`, 'gm');

/** The text of a `config.json`. A number like 30.0, which JSON.parse makes 30, is written as 30.0 where that matters. */
export function configText(raw: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(raw, null, 2).replace(INTEGER_IN_FLOAT, '$1.0')}\n`;
}
