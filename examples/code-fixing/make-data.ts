/**
 * Writes train.jsonl, test.jsonl and demonstrations.jsonl of the code-fixing example, and into the directory that is
 * given the model it begins with, as configuration and tokenizer without weights:
 *
 *   npx tsx examples/code-fixing/make-data.ts runs/code-fixing-start
 *
 * A task is a Python function of one line whose operator is not what the name says; its tests are told one by one, as
 * they fail. Held-out tasks have parameters that do not occur together in training. The demonstrations are those of somebody
 * careless: four attempts of ten are right, the others put in an operator at random.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { writeCharTokenizer } from '../../src/text/char-tokenizer.ts';

interface Operation {
  readonly operator: string;
  readonly of: (a: number, b: number) => number;
}
const OPERATIONS: Readonly<Record<string, Operation>> = {
  add: { operator: '+', of: (a, b) => a + b },
  sub: { operator: '-', of: (a, b) => a - b },
  mul: { operator: '*', of: (a, b) => a * b },
  div: { operator: '//', of: (a, b) => Math.floor(a / b) },
  mod: { operator: '%', of: (a, b) => a % b },
};
const NAMES = Object.keys(OPERATIONS);
const LETTERS = [...'abcxyz'];
/** Of the 30 pairs of parameters. */
const HELD_OUT = 8;
const CAREFUL = 0.4;
/** Every operator but the right one fails one of them. */
const ARGUMENTS: readonly (readonly [number, number])[] = [
  [7, 2],
  [3, 4],
  [9, 3],
  [5, 5],
];

const random = xoroshiro128plus(0);
const draw = (low: number, high: number) => uniformInt(random, low, high);
const oneOf = <T>(list: readonly T[]) => list[draw(0, list.length - 1)]!;
function shuffled<T>(list: readonly T[]): T[] {
  const items = [...list];
  for (let i = items.length - 1; i > 0; i--) {
    const j = draw(0, i);
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
  return items;
}

const pairs = shuffled(LETTERS.flatMap(p => LETTERS.filter(q => q !== p).map(q => [p, q] as const)));
const line = (name: string, [p, q]: readonly [string, string]) => `${p}${OPERATIONS[name]!.operator}${q}`;
const rowsOf = (some: typeof pairs) =>
  shuffled(
    some.flatMap(pair =>
      NAMES.flatMap(name =>
        NAMES.filter(wrong => wrong !== name).map(wrong => ({
          prompt: `${name}(${pair.join(',')}) ${line(wrong, pair)}`,
          solution: line(name, pair),
          template: `def ${name}(${pair.join(', ')}):\n    return {}`,
          tests: ARGUMENTS.map(args => ({ call: name, args, returns: OPERATIONS[name]!.of(...args) })),
        })),
      ),
    ),
  );
const train = rowsOf(pairs.slice(HELD_OUT));
const demonstrations = Array.from({ length: 3000 }, () => {
  const { prompt, solution, tests } = oneOf(train);
  const pair = [solution[0]!, solution.at(-1)!] as const;
  const messages = [{ role: 'user', content: prompt }];
  for (let attempt = 1; ; attempt++) {
    const name = uniformFloat64(random) < CAREFUL ? tests[0]!.call : oneOf(NAMES);
    messages.push({ role: 'assistant', content: line(name, pair) });
    const failed = tests.find(({ args, returns }) => OPERATIONS[name]!.of(...args) !== returns);
    if (failed === undefined || attempt === 3) return { messages };
    messages.push({ role: 'user', content: `${failed.call}(${failed.args.join(',')})=${failed.returns}` });
  }
});
const files = {
  'train.jsonl': train,
  'test.jsonl': rowsOf(pairs.slice(0, HELD_OUT)),
  'demonstrations.jsonl': demonstrations,
};
for (const [name, content] of Object.entries(files)) {
  writeFileSync(join(import.meta.dirname, name), content.map(row => `${JSON.stringify(row)}\n`).join(''));
  console.log(`${name}: ${content.length} rows`);
}

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: npx tsx examples/code-fixing/make-data.ts <directory>');
const END = '<|end|>';
const vocabulary = await writeCharTokenizer(directory, {
  special: ['<|pad|>', END, '<|user|>', '<|assistant|>'],
  alphabet: '0123456789abcdilmosuvxyz+-*/%(),= ',
  eos: END,
  pad: '<|pad|>',
  chatTemplate:
    "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content + '<|end|>' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
});
const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 40,
  hidden_size: 96,
  intermediate_size: 264,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 24,
  hidden_act: 'silu',
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  max_position_embeddings: 96,
  tie_word_embeddings: true,
  attention_bias: false,
  mlp_bias: false,
  initializer_range: 0.02,
  bos_token_id: null,
  eos_token_id: 1,
  pad_token_id: 0,
};
if (vocabulary > config.vocab_size) throw new Error(`${vocabulary} tokens do not fit ${config.vocab_size}`);
writeFileSync(join(directory, 'config.json'), `${JSON.stringify(config, null, 2)}\n`);
