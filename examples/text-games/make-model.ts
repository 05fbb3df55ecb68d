/**
 * Writes the model that learns the games, as a configuration and a tokenizer without weights:
 *
 *   npx tsx examples/text-games/make-model.ts
 *
 * A Llama-style decoder of 0.15 M parameters. Its tokens are the printable characters of ASCII, so that it can read and
 * write any such text, and the phrases of the games: what stands between the digits and the boxes of demonstrations.jsonl.
 * With them a puzzle is 136 tokens long on average instead of up to 920.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Message } from '../../src/episode/task.ts';
import { writeCharTokenizer } from '../../src/text/char-tokenizer.ts';

const directory = join(import.meta.dirname, 'init');
const END = '<|end|>';
const special = ['<|pad|>', END, '<|user|>', '<|assistant|>'];
const alphabet = `\n${Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('')}`;
const characters = await writeCharTokenizer(directory, {
  special,
  alphabet,
  eos: END,
  pad: '<|pad|>',
  chatTemplate:
    "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content + '<|end|>' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
});

const phrases = new Set<string>();
for (const line of readFileSync(join(import.meta.dirname, 'demonstrations.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')) {
  const { messages } = JSON.parse(line) as { messages: Message[] };
  for (const { content } of messages) {
    for (const part of content.split(/(\d|\\boxed\{|\})/)) if (part.length > 1) phrases.add(part);
  }
}
const file = join(directory, 'tokenizer.json');
const tokenizer = JSON.parse(readFileSync(file, 'utf8')) as { added_tokens: object[] };
const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };
for (const [i, content] of [...phrases].sort().entries()) {
  tokenizer.added_tokens.push({ id: characters + i, content, ...plain });
}
writeFileSync(file, `${JSON.stringify(tokenizer, null, 1)}\n`);

const size = characters + phrases.size;
const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: Math.ceil(size / 8) * 8,
  hidden_size: 64,
  intermediate_size: 176,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  hidden_act: 'silu',
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  max_position_embeddings: 512,
  tie_word_embeddings: true,
  attention_bias: false,
  mlp_bias: false,
  initializer_range: 0.02,
  bos_token_id: null,
  eos_token_id: 1,
  pad_token_id: 0,
};
writeFileSync(join(directory, 'config.json'), `${JSON.stringify(config, null, 2)}\n`);
console.log(`${directory}: ${characters} special tokens and characters, ${phrases.size} phrases`);
