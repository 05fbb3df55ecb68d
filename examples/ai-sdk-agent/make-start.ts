/**
 * Writes what the warm start needs: a model as configuration and tokenizer without weights, and demonstrations.
 *
 *   npx tsx examples/ai-sdk-agent/make-start.ts runs/ai-sdk-agent-start
 *
 * The model is that of examples/char-model with other tokens: the two ends of a tool call are one token each, so that a
 * model of 0.4 M parameters can write it. A share of 0.3 of the demonstrations calls the calculator and copies its
 * result; the others answer at once, which so small a model does badly.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { writeCharTokenizer } from '../../src/text/char-tokenizer.ts';

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: npx tsx examples/ai-sdk-agent/make-start.ts <directory>');

const END = '<|end|>';
const CALL = ['<tool_call>{"name":"calculator","arguments":{"expression":"', '"}}</tool_call>'] as const;
await writeCharTokenizer(directory, {
  special: ['<|pad|>', END, '<|user|>', '<|assistant|>', '<|tool|>', ...CALL],
  alphabet: '0123456789.+-*/()e',
  eos: END,
  pad: '<|pad|>',
  chatTemplate:
    "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content }}" +
    `{% for call in message.tool_calls or [] %}{{ '${CALL[0]}' + call.function.arguments.expression + '${CALL[1]}' }}{% endfor %}` +
    "{{ '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
});
const examples = join(import.meta.dirname, '..');
const config = JSON.parse(readFileSync(join(examples, 'char-model/init/config.json'), 'utf8')) as object;
writeFileSync(join(directory, 'config.json'), `${JSON.stringify(config, null, 2)}\n`);

const random = xoroshiro128plus(0);
const rows = readFileSync(join(examples, 'calculator-agent/train.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => {
    const { prompt, label } = JSON.parse(line) as { prompt: string; label: string };
    const isCall = uniformFloat64(random) < 0.3;
    const call = [
      { role: 'assistant', content: CALL.join(prompt) },
      { role: 'tool', content: label },
    ];
    const answer = { role: 'assistant', content: label };
    return `${JSON.stringify({ messages: [{ role: 'user', content: prompt }, ...(isCall ? call : []), answer] })}\n`;
  });
writeFileSync(join(directory, 'demonstrations.jsonl'), rows.join(''));
