import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../config/error.ts';
import type { evaluationOptions } from '../config/eval.ts';
import { messageOf } from '../episode/failure.ts';
import { writeFileAtomic } from '../storage/atomic.ts';
import { compareEvaluations, EvaluationFile } from '../training/compare.ts';
import type { Evaluation } from '../training/evaluate.ts';
import type { CommandContext } from './command.ts';
import { table } from './table.ts';

type EvalContext = CommandContext<typeof evaluationOptions>;

/** Writes what came out as the JSON file that eval.output names, if it does. */
export async function writeResult(
  { metrics, tasks, version }: Pick<Evaluation, 'metrics' | 'tasks' | 'version'>,
  model: string,
  { values, cwd }: Pick<EvalContext, 'values' | 'cwd'>,
): Promise<void> {
  const { 'eval.output': output } = values;
  if (output === undefined) return;
  const plan = {
    samples: values['eval.n_samples_per_prompt'],
    temperature: values['eval.temperature'],
    pass_score: values['eval.pass_score'],
    seed: values['train.seed'],
  };
  const file: EvaluationFile = { format: 1, model, version, plan, metrics, tasks: [...tasks] };
  await writeFileAtomic(resolve(cwd, output), `${JSON.stringify(file, nonFinite)}\n`);
}

/** JSON has no such numbers. */
function nonFinite(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

/** Prints how two results differ, and whether that is more than chance. */
export async function compareResults(
  files: readonly string[],
  { values, cwd, stdout, stderr }: EvalContext,
): Promise<undefined> {
  const [before, after] = files.map(file => readResult(resolve(cwd, file))) as [EvaluationFile, EvaluationFile];
  const plans = [before, after].map(({ plan }) => JSON.stringify(plan));
  if (plans[0] !== plans[1]) {
    stderr.write(`the two were asked differently, which can make the difference: ${plans[0]} and ${plans[1]}\n`);
  }
  const { sources, unpaired } = compareEvaluations(before, after);
  if (sources.length === 0) throw new ConfigError([`${files.join(' and ')} have no task in common`]);
  if (unpaired > 0) stderr.write(`${unpaired} tasks are in one of the two only and left out\n`);
  const show = (value: number) => value.toFixed(3);
  const rows = sources.map(({ source, metric, tasks, before, after, difference, low, high, p }) => [
    source,
    metric,
    tasks,
    ...[before, after, difference].map(show),
    `${show(low)} … ${show(high)}`,
    p.toFixed(4),
  ]);
  const heading = ['source', 'metric', 'tasks', 'before', 'after', 'change', '95 % interval', 'p'];
  stdout.write(`before: ${before.model}\nafter:  ${after.model}\n\n${table([heading, ...rows])}\n`);
  const { 'eval.output': output } = values;
  if (output !== undefined) {
    await writeFileAtomic(
      resolve(cwd, output),
      `${JSON.stringify({ before: before.model, after: after.model, unpaired, sources })}\n`,
    );
  }
}

function readResult(path: string): EvaluationFile {
  try {
    return EvaluationFile.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new ConfigError(
      [`${path} is not a result of tokenloop eval --eval.output: ${messageOf(error).split('\n', 1)[0]}`],
      {
        cause: error,
      },
    );
  }
}
