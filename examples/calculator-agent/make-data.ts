/**
 * Derives train.jsonl and test.jsonl from the published answers of GSM8K (MIT licence, see LICENSE-GSM8K):
 *
 *   npx tsx examples/calculator-agent/make-data.ts <directory with GSM8K's train.jsonl and test.jsonl>
 *
 * GSM8K's answers carry calculator annotations such as `<<48/2=24>>`. Kept are those, white space removed, whose
 * - expression is written with digits, `.`, `+ - * /` only, has at least one operator and at most 9 characters,
 * - result is a number of at most 6 characters, in the form in which the calculator prints it (`.5` becomes `0.5`),
 * - arithmetic is right: the calculator gives that result.
 * Each expression is kept once, in the order of its first appearance. train.jsonl comes from GSM8K's training file;
 * test.jsonl from its test file, without any expression that occurs in train.jsonl.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { evaluate, formatNumber } from '../../src/envs/arithmetic.ts';

const LONGEST_EXPRESSION = 9;
const LONGEST_RESULT = 6;

interface Counts {
  annotations: number;
  form: number;
  arithmetic: number;
  repeated: number;
}

/** Expression → result, for every annotation that passes the filter and is not in `known`. */
function tasks(file: string, known: ReadonlyMap<string, string>): { tasks: Map<string, string>; counts: Counts } {
  const counts: Counts = { annotations: 0, form: 0, arithmetic: 0, repeated: 0 };
  const kept = new Map<string, string>();
  for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const { answer } = JSON.parse(line) as { answer: string };
    for (const [, annotation] of answer.matchAll(/<<(.*?)>>/g)) {
      counts.annotations += 1;
      const [expression, result] = annotation!.replace(/\s/g, '').split('=') as [string, string?];
      if (!wellFormed(expression) || !/^-?(\d+\.?\d*|\.\d+)$/.test(result ?? '')) counts.form += 1;
      else if (calculate(expression) !== formatNumber(Number(result))) counts.arithmetic += 1;
      else if (formatNumber(Number(result)).length > LONGEST_RESULT) counts.form += 1;
      else if (kept.has(expression) || known.has(expression)) counts.repeated += 1;
      else kept.set(expression, formatNumber(Number(result)));
    }
  }
  return { tasks: kept, counts };
}

function wellFormed(expression: string): boolean {
  return /^[\d.+\-*/]+$/.test(expression) && /\d[+\-*/]/.test(expression) && expression.length <= LONGEST_EXPRESSION;
}

function calculate(expression: string): string | undefined {
  try {
    return formatNumber(evaluate(expression));
  } catch {
    return undefined; // no arithmetic after all, for example `1..5+2`
  }
}

function write(name: string, tasks: ReadonlyMap<string, string>): void {
  const rows = [...tasks].map(([prompt, label]) => `${JSON.stringify({ prompt, label })}\n`);
  writeFileSync(join(import.meta.dirname, name), rows.join(''));
}

const directory = process.argv[2];
if (directory === undefined) throw new Error('give the directory that holds train.jsonl and test.jsonl of GSM8K');
const train = tasks(join(directory, 'train.jsonl'), new Map());
const test = tasks(join(directory, 'test.jsonl'), train.tasks);
write('train.jsonl', train.tasks);
write('test.jsonl', test.tasks);
for (const [name, { tasks, counts }] of Object.entries({ train, test })) {
  console.log(
    `${name}: ${tasks.size} tasks of ${counts.annotations} annotations; left out: ${counts.form} by form, ` +
      `${counts.arithmetic} by arithmetic, ${counts.repeated} repeated`,
  );
}
