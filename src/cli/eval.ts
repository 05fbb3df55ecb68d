import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../config/error.ts';
import { evaluationOptions } from '../config/eval.ts';
import { messageOf } from '../episode/failure.ts';
import { serializeEpisode } from '../episode/serialize.ts';
import type { Values } from '../options/option.ts';
import { writeFileAtomic } from '../storage/atomic.ts';
import { jsonlTracker } from '../tracking/jsonl.ts';
import { evaluatePolicy } from '../train.ts';
import { compareEvaluations, EvaluationFile } from '../training/compare.ts';
import type { Evaluation } from '../training/evaluate.ts';
import { agentRun, chooseAgent } from './agent.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { loadEvaluationTasks } from './datasets.ts';
import { type Evaluated, openEvaluated } from './eval-policy.ts';
import { printEpisode } from './print-episode.ts';
import { openRunDirectory, runDirectory } from './run-directory.ts';
import { evaluationTable, overall, reported, resultLine } from './summary.ts';
import { table } from './table.ts';

type EvalOptions = typeof evaluationOptions;

export const command = defineCommand({
  name: 'eval',
  options: evaluationOptions,
  details: `Shows every metric and one episode; with --run.dir it also writes config.yaml, metrics.jsonl and episodes.jsonl, with
--eval.output the result as JSON. --eval.compare before.json after.json compares two results.`,
  run: async context => {
    const { 'eval.compare': files } = context.values;
    return files === undefined ? evaluate(context, () => openEvaluated(context)) : compare(files, context);
  },
});

/** The command; `open` makes the engine. */
export async function evaluate(
  context: CommandContext<EvalOptions>,
  open: () => Promise<Pick<Evaluated, 'sampler' | 'renderer' | 'close'> & { readonly name?: string }>,
): Promise<undefined> {
  const { values, cwd, stdout, stderr, interrupt } = context;
  const began = performance.now();
  const agent = await chooseAgent(values, cwd);
  const { 'eval.dataset': dataset } = values;
  if (dataset === undefined) throw new ConfigError(['eval.dataset is missing: it says on which tasks to evaluate']);
  const tasks = loadEvaluationTasks(dataset, values, { cwd, stderr, limit: values['eval.max_samples'] });
  const policy = await open();
  try {
    const evaluation = await evaluatePolicy({
      ...agentRun({ ...values, 'rollout.temperature': values['eval.temperature'] }),
      policy,
      tasks,
      agent,
      samples: values['eval.n_samples_per_prompt'],
      greedy: values['eval.greedy_enable'],
      temperature: values['eval.temperature'],
      passScore: values['eval.pass_score'],
      maxFailureRate: values['rollout.max_failure_rate'],
      signal: interrupt.signal,
      log: message => stderr.write(`${message}\n`),
    });
    if (values['run.dir'] !== undefined) await write(evaluation, context);
    const { 'eval.output': output } = values;
    if (output !== undefined) {
      const file = fileOf(evaluation, policy.name ?? values['model.model_name_or_path'] ?? 'policy', values);
      await writeFileAtomic(resolve(cwd, output), `${JSON.stringify(file, nonFinite)}\n`);
    }
    const decode = (tokens: Int32Array) => policy.renderer.decode(tokens, { special: true });
    const sample = printEpisode(evaluation.episodes[0]!, { decode, color: stdout.isTTY ?? false });
    const numbers = reported(values['eval.report']).map(one => ({
      label: one.label,
      values: [overall(one, evaluation.metrics)],
    }));
    const seconds = (performance.now() - began) / 1000;
    const result = resultLine(numbers, { seconds, seed: values['train.seed'] });
    stdout.write(`${[evaluationTable(evaluation.metrics), sample, result].join('\n\n')}\n`);
  } finally {
    await policy.close();
  }
}

async function write(
  { metrics, episodes }: Evaluation,
  { values, configFile, cwd, stderr }: CommandContext<EvalOptions>,
): Promise<void> {
  const run = runDirectory(values, { command: 'eval', configFile, cwd });
  const notice = (message: string) => stderr.write(`${message}\n`);
  const lock = await openRunDirectory(run, evaluationOptions, values, { resume: false, notice });
  try {
    const serialize = values['logger.episodes_enable'] ? { serialize: serializeEpisode } : {};
    const files = await jsonlTracker({ dir: run.dir, ...serialize });
    try {
      await files.log({ step: 0, metrics });
      await files.episodes?.({ step: 0, phase: 'eval', episodes });
    } finally {
      await files.close();
    }
  } finally {
    await lock.release();
  }
}

function fileOf({ metrics, tasks, version }: Evaluation, model: string, values: Values<EvalOptions>): EvaluationFile {
  const plan = {
    samples: values['eval.n_samples_per_prompt'],
    temperature: values['eval.temperature'],
    pass_score: values['eval.pass_score'],
    seed: values['train.seed'],
  };
  return { format: 1, model, version, plan, metrics, tasks: [...tasks] };
}

/** JSON has no such numbers. */
function nonFinite(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

/** Prints how two results differ, and whether that is more than chance. */
async function compare(
  files: readonly string[],
  { values, cwd, stdout, stderr }: CommandContext<EvalOptions>,
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
