import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Shapes of the measured models; their weights are random. */
export interface ModelShape {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly intermediate: number;
  readonly vocabulary: number;
  /** Rows and tokens a row of the measured training batch. */
  readonly batch: readonly [rows: number, length: number];
}

export const MODELS: Readonly<Record<string, ModelShape>> = {
  // The policy of examples/calculator-agent.
  '0.4M': { hidden: 96, layers: 4, heads: 4, kvHeads: 2, intermediate: 264, vocabulary: 28, batch: [128, 16] },
  '0.75M': { hidden: 128, layers: 4, heads: 4, kvHeads: 2, intermediate: 352, vocabulary: 64, batch: [32, 64] },
  '25M': { hidden: 512, layers: 8, heads: 8, kvHeads: 4, intermediate: 1408, vocabulary: 4096, batch: [16, 64] },
  // SmolLM2-135M.
  '135M': { hidden: 576, layers: 30, heads: 9, kvHeads: 3, intermediate: 1536, vocabulary: 49152, batch: [4, 128] },
};

/** Writes the configuration into a directory of its own and removes it after `use`. */
export async function withConfig<T>(shape: ModelShape, use: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'tokenloop-bench-'));
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: shape.vocabulary,
    hidden_size: shape.hidden,
    intermediate_size: shape.intermediate,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    head_dim: shape.hidden / shape.heads,
    hidden_act: 'silu',
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    max_position_embeddings: 2048,
    tie_word_embeddings: true,
    attention_bias: false,
    mlp_bias: false,
    initializer_range: 0.02,
    dtype: 'float32',
  };
  try {
    writeFileSync(join(directory, 'config.json'), JSON.stringify(config));
    return await use(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
