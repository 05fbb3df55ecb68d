import { totalmem } from 'node:os';
import { describe, expect, it } from 'vitest';
import { decoderConfig } from '../models/families.ts';
import { checkMemory, estimateMemory, memoryLimit } from './memory.ts';

/** Of SmolLM2-135M: 134.5 million parameters. */
const config = decoderConfig({
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 49_152,
  hidden_size: 576,
  intermediate_size: 1536,
  num_hidden_layers: 30,
  num_attention_heads: 9,
  num_key_value_heads: 3,
  max_position_embeddings: 8192,
  tie_word_embeddings: true,
});
const weights = 4 * 134_515_008;

describe('the estimate', () => {
  it('counts the weights once to sample, and five times and the activations to train', () => {
    expect(estimateMemory(config, { training: false, maxTokens: 4096 })).toEqual({ weights });
    expect(estimateMemory(config, { training: true, maxTokens: 1000 })).toEqual({
      weights,
      gradients: 2 * weights,
      optimizer: 2 * weights,
      activations: 4000 * 30 * (5760 + 7680),
      logits: 4 * 2 ** 26,
    });
  });

  it('counts what goes into layers where the rest is computed anew, and logits of blocks or of all there are', () => {
    const use = { training: true, maxTokens: 1000, recompute: true, logitsBytes: 1e6 };
    expect(estimateMemory(config, use)).toMatchObject({
      activations: 4000 * (30 * 576 + 5760 + 7680),
      logits: 4e6,
    });
    expect(estimateMemory(config, { ...use, logitsBytes: 1e9 }).logits).toBe(4 * 4000 * 49_152);
    expect(estimateMemory({ ...config, head: 'score' }, use)).not.toHaveProperty('logits');
  });

  it("counts the sampler's own copy of the matrices", () => {
    expect(estimateMemory(config, { training: false, maxTokens: 1, samplerBytes: 2 })).toEqual({
      weights,
      sampler: weights / 2,
    });
  });

  it('counts gradients and moments of the adapter alone under LoRA', () => {
    // Rank 8, 30 layers: q, k, v and o read and write 576, 192, 192, 576; gate, up and down 576 and 1536.
    const adapter = 4 * 30 * 8 * (4 * 576 + 576 + 192 + 192 + 576 + 3 * (576 + 1536));
    const lora = { rank: 8, alpha: 16, targetModules: 'all-linear' } as const;
    expect(estimateMemory(config, { training: false, maxTokens: 1, lora })).toEqual({ weights, adapter });
    expect(estimateMemory(config, { training: true, maxTokens: 1, lora })).toMatchObject({
      weights,
      adapter,
      gradients: 2 * adapter,
      optimizer: 2 * adapter,
    });
  });

  it('counts a base in few bits, with its scales, embedding and norms in float32', () => {
    const lora = { rank: 8, alpha: 16, targetModules: 'all-linear' } as const;
    const estimate = (frozen: 'int8' | 'nf4') =>
      estimateMemory(config, { training: false, maxTokens: 1, lora, frozen }).weights;
    const whole = 4 * (49_152 * 576 + 61 * 576);
    const [matrices, rows] = [30 * (960 * 576 + 576 * 576 + 3 * 1536 * 576), 30 * (960 + 576 + 3072 + 576)];
    expect(estimate('int8')).toBe(whole + matrices + 4 * rows);
    expect(estimate('nf4')).toBe(whole + matrices / 2 + (4 * matrices) / 64);
  });

  it('refuses what does not fit, with the numbers', () => {
    expect(() => checkMemory(config, { training: true, maxTokens: 1000 }, 'm', 5e9)).not.toThrow();
    expect(() => checkMemory(config, { training: true, maxTokens: 1000 }, 'm', 4e9)).toThrow(
      'm: training the model needs about 4.6 GB (weights 0.5 GB, gradients 1.1 GB, optimizer 1.1 GB, activations 1.6 GB, logits 0.3 GB), and this machine has 4.0 GB; take a smaller model, fewer tokens per micro-batch, gradient checkpointing, LoRA or a machine with more memory',
    );
    expect(() => checkMemory(config, { training: false, maxTokens: 1000 }, 'm', 0.5e9)).toThrow(
      'm: the model needs about 0.5 GB, and this machine has 0.5 GB; take a smaller model or a machine',
    );
  });

  it('is held against the memory of the machine', () => {
    expect(memoryLimit()).toBeGreaterThan(0);
    expect(memoryLimit()).toBeLessThanOrEqual(totalmem());
    const huge = { ...config, hiddenSize: 2 ** 20, vocabSize: 2 ** 24 };
    expect(() => checkMemory(huge, { training: false, maxTokens: 1 }, 'm')).toThrow(/needs about \d+ GB, and this/);
  });
});
