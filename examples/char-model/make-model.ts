/**
 * Writes the model that the examples train from scratch, as a configuration and a tokenizer without weights:
 *
 *   npx tsx examples/char-model/make-model.ts examples/char-model/init
 *
 * A Llama-style decoder of 0.4 M parameters that reads characters: digits, arithmetic, and the letters of the examples'
 * small languages (calculator and guessing game, see src/envs).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeCharTokenizer } from '../../src/text/char-tokenizer.ts';

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: npx tsx examples/char-model/make-model.ts <directory>');

const END = '<|end|>';
const vocabulary = await writeCharTokenizer(directory, {
  special: ['<|pad|>', END, '<|user|>', '<|assistant|>', '<|tool|>'],
  alphabet: '0123456789.+-*/()ace<>?',
  eos: END,
  pad: '<|pad|>',
  chatTemplate:
    "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content + '<|end|>' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
});
const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 28,
  hidden_size: 96,
  intermediate_size: 264,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 24,
  hidden_act: 'silu',
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  max_position_embeddings: 64,
  tie_word_embeddings: true,
  attention_bias: false,
  mlp_bias: false,
  initializer_range: 0.02,
  bos_token_id: null,
  eos_token_id: 1,
  pad_token_id: 0,
};
if (vocabulary > config.vocab_size)
  throw new Error(`${vocabulary} tokens do not fit a vocabulary of ${config.vocab_size}`);
await writeFile(join(directory, 'config.json'), `${JSON.stringify(config, null, 2)}\n`);
