import { ARCHITECTURES, type Architecture, classifierName, FAMILIES, type Family } from './architectures.ts';
import { type HuggingFaceConfig, parseConfig } from './huggingface.ts';
import { type LayerKinds, layerKinds } from './layers.ts';

/** What differs between decoder checkpoints; everything that a graph or a parameter layout asks about a model. */
export interface DecoderConfig extends LayerKinds {
  readonly architecture: Architecture;
  /** `lm` predicts tokens; `score` gives one number for a hidden state (a critic or a reward model). */
  readonly head: 'lm' | 'score';
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
  /** Norms multiply by this plus their weight: 1 where weights are stored around 0 (Gemma), else 0. */
  readonly normOffset: 0 | 1;
  /** The results of attention and of the feed-forward block are normalised as well, before they are added. */
  readonly sandwichNorms: boolean;
  /** Queries and keys are normalised over each head before they are rotated. */
  readonly qkNorm: boolean;
  /** Which projections add a bias. */
  readonly biases: { readonly qkv: boolean; readonly output: boolean; readonly mlp: boolean };
  /** The checkpoint stores q, k, v as one tensor, and gate, up as one. */
  readonly fusedTensors: boolean;
  readonly activation: Activation;
  /** Factor on token embeddings. */
  readonly embeddingScale: number;
  /** Factor on queries. */
  readonly queryScale: number;
  /** Attention scores and logits become cap · tanh(x / cap); null leaves them. */
  readonly attentionCap: number | null;
  readonly logitCap: number | null;
  /** The output projection is the embedding matrix. */
  readonly tied: boolean;
  /** Standard deviation of freshly drawn weights. */
  readonly initializerRange: number;
  readonly bosToken: number | null;
  readonly eosTokens: readonly number[];
  readonly padToken: number | null;
}

/** `geluTanh` is the tanh approximation of GELU. */
export type Activation = 'silu' | 'geluTanh';
const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  silu: 'silu',
  swish: 'silu',
  gelu_pytorch_tanh: 'geluTanh',
  gelu_new: 'geluTanh',
};

/**
 * Reads the parsed content of a Hugging Face `config.json`. `where` names the file in errors. Throws on a missing or
 * malformed field, on an unknown architecture, and on every setting that would change the model's output and is not
 * implemented: nothing is ignored.
 */
export function decoderConfig(raw: unknown, where = 'config.json'): DecoderConfig {
  const { architecture, head } = knownArchitecture(raw, where);
  const family: Family = FAMILIES[architecture];
  const config = parseConfig(raw, where);
  const absent = family.required?.find(field => config[field] === undefined);
  if (absent !== undefined) throw new Error(`${where}: ${absent} is missing; ${architecture} needs it (null for none)`);
  refuseUnsupported(config, architecture, family, where);
  if (head === 'score') checkLabels(config, where);

  const heads = config.num_attention_heads;
  const kvHeads = config.num_key_value_heads ?? heads;
  const headDim = config.head_dim ?? config.hidden_size / heads;
  if (heads % kvHeads !== 0) {
    throw new Error(`${where}: num_attention_heads ${heads} is not a multiple of num_key_value_heads ${kvHeads}`);
  }
  if ((architecture === 'LlamaForCausalLM' || family.gemma) && config.hidden_size % heads !== 0) {
    // Not needed here, but Transformers would refuse to load what is written.
    throw new Error(`${where}: hidden_size ${config.hidden_size} is not a multiple of num_attention_heads ${heads}`);
  }
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    throw new Error(
      `${where}: head_dim (hidden_size ${config.hidden_size} / num_attention_heads ${heads} if not given) is ${headDim}; rotary embeddings need an even integer`,
    );
  }
  const attentionBias = family.attentionBias === 'option' && config.attention_bias === true;
  const eos = config.eos_token_id ?? [];
  const cap = (field: NonNullable<Family['caps']>[number]) =>
    family.caps?.includes(field) ? (config[field] ?? null) : null;
  return {
    architecture,
    head,
    vocabSize: config.vocab_size,
    hiddenSize: config.hidden_size,
    layers: config.num_hidden_layers,
    heads,
    kvHeads,
    headDim,
    intermediateSize: config.intermediate_size,
    rmsNormEps: config.rms_norm_eps ?? family.rmsNormEps ?? 1e-6,
    normOffset: family.gemma ? 1 : 0,
    sandwichNorms: family.gemma ?? false,
    qkNorm: family.qkNorm ?? false,
    biases: {
      qkv: attentionBias || family.attentionBias === 'qkv',
      output: attentionBias,
      mlp: family.mlpBias === true && config.mlp_bias === true,
    },
    fusedTensors: family.fusedTensors ?? false,
    activation: ACTIVATIONS[activationField(config, family).value]!,
    // In float32, like Transformers with float32 weights; with bfloat16 weights it rounds the factor to bfloat16.
    embeddingScale: family.gemma ? Math.sqrt(config.hidden_size) : 1,
    queryScale: 1 / Math.sqrt(family.gemma ? config.query_pre_attn_scalar! : headDim),
    attentionCap: cap('attn_logit_softcapping'),
    logitCap: cap('final_logit_softcapping'),
    tied: config.tie_word_embeddings ?? family.tied ?? false,
    initializerRange: config.initializer_range,
    bosToken: config.bos_token_id ?? null,
    eosTokens: typeof eos === 'number' ? [eos] : eos,
    padToken: config.pad_token_id ?? null,
    ...layerKinds(config, family, headDim, where),
  };
}

/** The raw `config.json` of the same model with a `score` head instead of its token head, as Transformers writes it. */
export function scoreConfig(raw: Readonly<Record<string, unknown>>, where = 'config.json'): Record<string, unknown> {
  const { architecture } = knownArchitecture(raw, where);
  return {
    ...raw,
    architectures: [classifierName(architecture)],
    id2label: { '0': 'LABEL_0' },
    label2id: { LABEL_0: 0 },
  };
}

function knownArchitecture(raw: unknown, where: string): Pick<DecoderConfig, 'architecture' | 'head'> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new Error(`${where}: expected a JSON object, found ${JSON.stringify(raw)}`);
  }
  const named = (raw as { architectures?: unknown }).architectures;
  const name = Array.isArray(named) && named.length === 1 ? named[0] : named;
  const found = ARCHITECTURES.find(known => known === name || classifierName(known) === name);
  if (found === undefined) {
    throw new Error(
      `${where}: architectures is ${JSON.stringify(named)}; one of ${ARCHITECTURES.join(', ')} is needed`,
    );
  }
  return { architecture: found, head: found === name ? 'lm' : 'score' };
}

function activationField(config: HuggingFaceConfig, family: Family) {
  return family.gemma
    ? { name: 'hidden_activation' as const, value: config.hidden_activation ?? 'gelu_pytorch_tanh' }
    : { name: 'hidden_act' as const, value: config.hidden_act ?? 'silu' };
}

function refuseUnsupported(config: HuggingFaceConfig, architecture: Architecture, family: Family, where: string): void {
  const refuse = (field: keyof HuggingFaceConfig, remedy: string) => {
    throw new Error(`${where}: ${field} is ${JSON.stringify(config[field])}, which is not supported; ${remedy}`);
  };
  if (config.model_type !== family.modelType) {
    refuse('model_type', `${architecture} needs ${JSON.stringify(family.modelType)}`);
  }
  const activation = activationField(config, family);
  if (!Object.hasOwn(ACTIVATIONS, activation.value)) {
    refuse(activation.name, `known are ${Object.keys(ACTIVATIONS).join(', ')}`);
  }
  if (config.attention_bias && family.attentionBias === undefined) {
    refuse('attention_bias', `${architecture} has no such biases`);
  }
  if (config.attention_bias === false && family.attentionBias === 'qkv') {
    refuse('attention_bias', `${architecture} always has biases on q, k and v`);
  }
  if (config.mlp_bias && !family.mlpBias) refuse('mlp_bias', `${architecture} has no such biases`);
  for (const field of ['attn_logit_softcapping', 'final_logit_softcapping'] as const) {
    if (config[field] != null && !family.caps?.includes(field)) refuse(field, `${architecture} has no such cap`);
  }
  if (config.query_pre_attn_scalar != null && !family.gemma) {
    refuse('query_pre_attn_scalar', `${architecture} scales queries by the head size`);
  }
  if (family.gemma && config.query_pre_attn_scalar == null) {
    refuse('query_pre_attn_scalar', 'a number above 0 is needed');
  }
  if (config.use_bidirectional_attention) refuse('use_bidirectional_attention', 'only causal attention is');
  for (const field of ['attention_dropout', 'resid_pdrop', 'embd_pdrop'] as const) {
    if (config[field]) refuse(field, 'set it to 0');
  }
  if (config.quantization_config != null) {
    refuse('quantization_config', 'use the F32, F16 or BF16 checkpoint it was made from');
  }
}

function checkLabels(config: HuggingFaceConfig, where: string): void {
  const labels = config.num_labels ?? (config.id2label ? Object.keys(config.id2label).length : 2);
  if (labels === 1) return;
  throw new Error(
    `${where}: the head has ${labels} outputs (num_labels, or the entries of id2label, or 2 if neither is given); a value head has 1`,
  );
}
