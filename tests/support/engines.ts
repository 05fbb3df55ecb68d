import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostOptions } from '../../src/engines/onnx/protocol.ts';

/** Options of the embedded engine for tests: small, on one thread, which is the faster the smaller the model is. */
export function hostOptions(
  model: string,
  options: {
    readonly initSeed?: number;
    readonly sampler?: Partial<HostOptions['sampler']>;
    readonly learner?: Partial<HostOptions['learner']>;
  } = {},
): HostOptions {
  return {
    model,
    ...(options.initSeed === undefined ? {} : { initSeed: options.initSeed }),
    sampler: { threads: 1, maxRows: 64, prefillTokens: 256, prefixCacheBytes: 1 << 20, ...options.sampler },
    learner: {
      threads: 1,
      maxTokens: 256,
      betas: [0.9, 0.95],
      eps: 1e-8,
      weightDecay: 0.1,
      maxNorm: 1,
      ...options.learner,
    },
  };
}

export const TINY_VOCABULARY = 29;

/** A directory with the configuration of a tiny decoder and no weights. */
export function tinyModel(parent: string, fields: object = {}): string {
  const directory = join(parent, 'tiny');
  mkdirSync(directory, { recursive: true });
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: TINY_VOCABULARY,
    hidden_size: 16,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    intermediate_size: 24,
    max_position_embeddings: 512,
    tie_word_embeddings: true,
    // Large, so that the distributions of fresh weights are far from uniform.
    initializer_range: 0.4,
    ...fields,
  };
  writeFileSync(join(directory, 'config.json'), JSON.stringify(config));
  return directory;
}
