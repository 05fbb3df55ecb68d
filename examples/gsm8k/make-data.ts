/**
 * Writes train.jsonl and test.jsonl from the files of GSM8K (train.jsonl and test.jsonl of
 * https://github.com/openai/grade-school-math): every question with the number that its solution ends with.
 *
 *   npx tsx examples/gsm8k/make-data.ts <directory of the original files>
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [origin] = process.argv.slice(2);
if (origin === undefined) throw new Error('usage: npx tsx examples/gsm8k/make-data.ts <directory>');

for (const name of ['train.jsonl', 'test.jsonl']) {
  const rows = readFileSync(join(origin, name), 'utf8').trimEnd().split('\n');
  const tasks = rows.map((row, index) => {
    const { question, answer } = JSON.parse(row) as { question: string; answer: string };
    const label = /\n#### (.+)$/.exec(answer)?.[1]?.replaceAll(',', '').trim();
    if (label === undefined || !Number.isFinite(Number(label)))
      throw new Error(`${name}:${index + 1}: no final number`);
    return { prompt: question.trim(), label };
  });
  writeFileSync(join(import.meta.dirname, name), tasks.map(task => `${JSON.stringify(task)}\n`).join(''));
  console.log(`${name}: ${tasks.length} tasks`);
}
