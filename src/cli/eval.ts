import { closedOnce } from '../agents/closed-once.ts';
import type { Executor } from '../agents/contracts.ts';
import { ConfigError } from '../config/error.ts';
import { evaluationOptions } from '../config/eval.ts';
import { serializeEpisode } from '../episode/serialize.ts';
import { jsonlTracker } from '../tracking/jsonl.ts';
import { evaluatePolicy } from '../train.ts';
import type { Evaluation } from '../training/evaluate.ts';
import { agentRun, chooseAgent } from './agent.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { loadEvaluationTasks } from './datasets.ts';
import { displayOf } from './display.ts';
import { countingEpisodes } from './episode-progress.ts';
import { evaluateEnvironments } from './eval-env.ts';
import { type Evaluated, openEvaluated } from './eval-policy.ts';
import { compareResults, writeResult } from './eval-result.ts';
import { printEpisode } from './print-episode.ts';
import { openModelReward } from './reward-model.ts';
import { openRunDirectory, runDirectory } from './run-directory.ts';
import { evaluationTable, overall, reported, resultLine } from './summary.ts';
import { tracedAgent } from './trackers.ts';

type EvalOptions = typeof evaluationOptions;
type OpenEvaluated = () => Promise<Pick<Evaluated, 'sampler' | 'renderer' | 'close'> & { readonly name?: string }>;

export const command = defineCommand({
  name: 'eval',
  options: evaluationOptions,
  details: `Shows every metric and one episode; with --run.dir it also writes config.yaml, metrics.jsonl and episodes.jsonl, with
--eval.output the result as JSON. --eval.compare before.json after.json compares two results. --env game:*-easy lets
the model, a random and an oracle player play environments and shows one table.`,
  run: async context => {
    const { 'eval.compare': files, 'rollout.dtype': samplingDtype } = context.values;
    const open = () => openEvaluated(context, { samplingDtype });
    if (files !== undefined) return compareResults(files, context);
    return context.values['eval.env'] === undefined ? evaluate(context, open) : evaluateEnvironments(context, open);
  },
});

/** The command; `open` makes the engine. */
export async function evaluate(context: CommandContext<EvalOptions>, open: OpenEvaluated): Promise<undefined> {
  const { values, cwd, env, stderr } = context;
  const openModel = () => openModelReward(context);
  const print = (line: string) => stderr.write(`${line}\n`);
  const agent = closedOnce(await tracedAgent(await chooseAgent(values, { cwd, env, print, openModel }), values));
  try {
    await evaluateAgent(agent, context, open);
  } finally {
    await agent.close?.();
  }
}

async function evaluateAgent(
  agent: Executor,
  context: CommandContext<EvalOptions>,
  open: OpenEvaluated,
): Promise<undefined> {
  const { values, stdout, interrupt } = context;
  const began = performance.now();
  const { 'eval.dataset': dataset } = values;
  if (dataset === undefined) throw new ConfigError(['eval.dataset is missing: it says on which tasks to evaluate']);
  const limits = { limit: values['eval.max_samples'], split: values['eval.split'] };
  const tasks = await loadEvaluationTasks(dataset, values, context, limits);
  const { 'eval.n_samples_per_prompt': samples, 'eval.greedy_enable': greedy } = values;
  const totalSteps = tasks.length * (samples + (greedy ? 1 : 0));
  const fields = [
    { metric: 'reward', label: 'reward' },
    { metric: 'failed', label: 'failed', format: 'percent' as const },
  ];
  const { tracker, ...display } = displayOf(values, context, { totalSteps, unit: 'episode', fields });
  const policy = await open();
  try {
    const evaluation = await evaluatePolicy({
      ...agentRun({ ...values, 'rollout.temperature': values['eval.temperature'] }),
      policy,
      tasks,
      agent: values.json ? agent : countingEpisodes(agent, tracker),
      samples,
      greedy,
      temperature: values['eval.temperature'],
      passScore: values['eval.pass_score'],
      maxFailureRate: values['rollout.max_failure_rate'],
      signal: interrupt.signal,
      log: display.warn,
    }).finally(() => values.json || tracker.close());
    if (values.json) await tracker.log({ step: 0, metrics: evaluation.metrics });
    if (values['run.dir'] !== undefined) await write(evaluation, context);
    await writeResult(evaluation, policy.name ?? 'policy', context);
    const decode = (tokens: Int32Array) => policy.renderer.decode(tokens, { special: true });
    const sample = printEpisode(evaluation.episodes[0]!, { decode, color: stdout.color ?? false });
    const numbers = reported(values['eval.report']).map(one => ({
      label: one.label,
      values: [overall(one, evaluation.metrics)],
    }));
    const seconds = (performance.now() - began) / 1000;
    const result = resultLine(numbers, { seconds, seed: values['train.seed'] });
    display.report([evaluationTable(evaluation.metrics), sample, result].join('\n\n'));
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
