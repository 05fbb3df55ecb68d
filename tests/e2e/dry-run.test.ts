import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { dispatched } from '../support/in-process.ts';
import { workplace, writeRows, writeTinyModel } from '../support/workplace.ts';

/** What the commands show of their data without a weight of the model, which reads characters and has 64 positions. */

const cwd = workplace();
beforeAll(async () => {
  await writeTinyModel(join(cwd, 'model'));
  rmSync(join(cwd, 'model/model.safetensors'));
  writeRows(join(cwd, 'demonstrations.jsonl'), [
    { input: '1+2', output: 'a3', label: 3 },
    { input: '10+20', output: 'a30', label: 30 },
    { input: '1+1', label: 2 },
    { input: '1+2', output: 'a'.repeat(80), label: 1 },
    { input: '1'.repeat(70), output: 'a', label: 1 },
    { input: 'É', output: 'a', label: 1 },
  ]);
  writeRows(join(cwd, 'pairs.jsonl'), [
    { q: '1+2', chosen: 'a3', rejected: 'a4' },
    { q: '1+2', chosen: 'a3', rejected: 'a3' },
  ]);
  writeRows(join(cwd, 'texts.jsonl'), [{ input: '12'.repeat(50) }, { input: '123' }]);
});

const run = async (argv: readonly string[]) => {
  const { code, out, err } = await dispatched([...argv, '--model.model_name_or_path', 'model'], cwd);
  return { code, out: out.join(''), err: err.join('') };
};
const numbers = (out: string) =>
  Object.fromEntries([...out.matchAll(/^([a-z ]+?) +(\d+)$/gm)].map(([, name, count]) => [name, Number(count)]));

it('sft shows trained tokens, counts every row, and writes nothing', async () => {
  const argv = ['sft', '--dry-run', '--data.dataset', 'demonstrations.jsonl', '--data.output_key', 'output'];
  const { code, out, err } = await run([...argv, '--data.apply_chat_template', '--run.dir', 'made']);
  expect(code).toBe(0);
  expect(out).toContain(
    'example 1: 9 tokens, 3 trained tokens\n<|user|>1+2<|end|><|assistant|>[[a3<|end|>]]\nids 2 6 16 7 1 3 ',
  );
  expect(out).toContain('<|user|>10+20<|end|><|assistant|>[[a30<|end|>]]');
  expect(numbers(out)).toEqual({
    examples: 2,
    sequences: 2,
    tokens: 21,
    'trained tokens': 7,
    longest: 12,
    malformed: 4,
  });
  expect(out).toMatch(/9 to 16 +2 +#{30}\n$/);
  expect(err).toMatch(
    /4 malformed rows left out, the first:\n.*:3: no column "output" \(data\.output_key\); this row has/,
  );
  expect(err).toMatch(/:4: the example has 87 tokens and the model sees 64; shorten it\n/);
  expect(err).toMatch(/:5: .* 64, and its prompt alone leaves no room for the response; shorten it\n/);
  expect(existsSync(join(cwd, 'made'))).toBe(false);
  expect(readdirSync(cwd)).not.toContain('runs');
});

it.each(['rm', 'dpo'])('%s shows both answers', async name => {
  const argv = [name, '--dry-run', '--data.dataset', 'pairs.jsonl', '--data.prompt_key', 'q'];
  const { code, out, err } = await run([...argv, '--data.apply_chat_template']);
  expect(code).toBe(0);
  expect(out).toContain('example 1, chosen: 9 tokens, 3 answer tokens\n<|user|>1+2<|end|><|assistant|>[[a3<|end|>]]\n');
  expect(out).toContain(
    'example 1, rejected: 9 tokens, 3 answer tokens\n<|user|>1+2<|end|><|assistant|>[[a4<|end|>]]\n',
  );
  expect(numbers(out)).toMatchObject({ examples: 1, sequences: 2, malformed: 1 });
  expect(err).toMatch(/pairs\.jsonl:2: "chosen" and "rejected" hold the same answer/);
});

it('texts are learned whole, in windows of the model', async () => {
  const argv = ['sft', '--dry-run', '--data.dataset', 'texts.jsonl', '--model.pretrain_mode_enable'];
  const { code, out } = await run(argv);
  expect(code).toBe(0);
  // 101 tokens with the one that ends the text: 64, and 38 that begin with the last of those.
  expect(out).toMatch(
    /^example 1: 64 tokens, 63 trained tokens\n1\[\[2(12){31}\]\]\n.*\n\nexample 1: 38 tokens, 37 tr/,
  );
  expect(out).toContain('\n1[[23<|end|>]]\n');
  expect(numbers(out)).toMatchObject({ examples: 2, sequences: 3, tokens: 106, 'trained tokens': 103, longest: 64 });
  const refused = await run([...argv, '--data.apply_chat_template']);
  expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/leave out data\.apply_chat_template/) });
});

it('data reads tasks, demonstrations and pairs; with --dry-run it shows the first of them', async () => {
  const tasks = ['data', '--data.dataset', 'demonstrations.jsonl', '--data.apply_chat_template'];
  const { code, out, err } = await run([...tasks, '--data.label_key', 'label', '--dry-run']);
  expect(code).toBe(0);
  expect(out).toMatch(
    /^example 1, prompt, label "3": 6 tokens\n<\|user\|>1\+2<\|end\|><\|assistant\|>\nids 2 6 16 7 1 3\n\n/,
  );
  expect(numbers(out)).toEqual({ examples: 4, sequences: 4, tokens: 26, longest: 8, malformed: 2 });
  expect(err).toMatch(/:5: the prompt has 73 tokens and the model sees 64, which leaves no room for the response/);
  expect((await run(tasks)).out).toMatch(/^data +count\n/);
  const demonstrations = await run([...tasks, '--data.kind', 'demonstrations', '--data.output_key', 'output']);
  expect(numbers(demonstrations.out)).toMatchObject({ examples: 2, 'trained tokens': 7 });
  const pairs = ['data', '--data.kind', 'pairs', '--data.dataset', 'pairs.jsonl', '--data.prompt_key', 'q'];
  expect(numbers((await run(pairs)).out)).toMatchObject({ examples: 1, 'answer tokens': 6, malformed: 1 });
});

it.each([
  ['sft', 'demonstrations.jsonl', ['--data.output_key', 'answer'], '{answer: output}', 2],
  ['dpo', 'pairs.jsonl', ['--data.prompt_key', 'question'], '{question: q}', 1],
  ['rm', 'pairs.jsonl', ['--data.prompt_key', 'question'], '{question: q}', 1],
  ['data', 'pairs.jsonl', ['--data.prompt_key', 'question', '--data.kind', 'pairs'], '{question: q}', 1],
])('%s reads renamed columns', async (name, dataset, options, mapping, examples) => {
  const argv = [name, '--dry-run', '--data.dataset', dataset, ...options, '--data.apply_chat_template'];
  const { code, out, err } = await run([...argv, '--data.column_mapping', mapping]);
  expect(code, err).toBe(0);
  expect(numbers(out)).toMatchObject({ examples });
  const unknown = await run([...argv, '--data.column_mapping', '{answer: nothing}']);
  expect(unknown.err).toMatch(/no column "nothing" \(data\.column_mapping makes it "answer"\); this row has/);
});

it('names the row where the chat template raises, with what it says', async () => {
  writeFileSync(join(cwd, 'model/chat_template.jinja'), "{{ raise_exception('roles must alternate') }}");
  const argv = ['sft', '--dry-run', '--data.dataset', 'demonstrations.jsonl', '--data.output_key', 'output'];
  const { code, err } = await run([...argv, '--data.apply_chat_template']);
  expect(code).toBe(2);
  expect(err).toMatch(/:1: the chat template could not render a conversation .* \[user\]: roles must alternate/);
  expect(err).toMatch(
    /demonstrations\.jsonl: no row can be used, all 6 rows are malformed\. The first, .*:1: the chat/,
  );
});
