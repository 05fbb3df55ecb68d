import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Task } from '../episode/task.ts';
import type { Ledger } from '../tracking/ledger.ts';
import type { Best } from '../training/best.ts';
import { checkpointDirectory } from '../training/checkpoint.ts';
import type { TrainStep } from '../training/loop.ts';
import { printEpisode } from './print-episode.ts';
import type { RunDirectory } from './run-directory.ts';
import { comparison, type Metrics, overall, type Reported, resultLine } from './summary.ts';
import { table } from './table.ts';

export interface FinalParts {
  /** Evaluation before training. */
  readonly before: Metrics | undefined;
  /** The best evaluation, where that is asked for. */
  readonly best: Best | undefined;
  /** The last step; undefined when there was nothing left to do. */
  readonly last: TrainStep | undefined;
  readonly report: readonly Reported[];
  readonly run: RunDirectory;
  readonly seconds: number;
  readonly seed: number;
  readonly decode: (tokens: Int32Array) => string;
  /** How faithfully a recorded agent's episodes were trained on. */
  readonly fidelity?: string | undefined;
}

const SAMPLES = 3;

/** What is shown when a run is done: comparison, sample episodes, where everything is, and the result line. */
export function finalReport(parts: FinalParts, color: boolean): string {
  const { before, best, last, report, run, seconds, seed, decode } = parts;
  if (last === undefined) return `nothing left to do: the run in ${run.shown} has made all its steps`;
  const after = last.evaluation?.metrics;
  const episodes = (last.evaluation?.episodes ?? last.episodes).slice(0, SAMPLES);
  const numbers =
    before && after
      ? report.map(one => ({ label: one.label, values: [overall(one, before), overall(one, after)] }))
      : [{ label: 'reward', values: [last.metrics['rollout/reward_mean'] ?? Number.NaN] }];
  return [
    ...(before && after ? [comparison(report, before, after)] : []),
    ...episodes.map(episode => printEpisode(episode, { decode, color })),
    ...(best ? [describeBest(run, best)] : []),
    ...(parts.fidelity === undefined ? [] : [parts.fidelity]),
    nextSteps(run, episodes[0]?.task),
    resultLine(numbers, { seconds, seed }),
  ].join('\n\n');
}

function describeBest(run: RunDirectory, { metric, value, step }: Best): string {
  const where = step === 0 ? 'before training' : `after ${step} steps: ${checkpointDirectory(run.checkpoints, step)}`;
  return `best ${metric}: ${value.toFixed(3)} ${where}`;
}

/** The failures of a run, one line for each class; undefined when there were none. */
export function describeFailures(entries: Ledger): string | undefined {
  const rows = Object.entries(entries).map(([name, { count, first }]) => [
    name,
    count,
    `step ${first.step}, ${first.phase}, ${first.episode}: ${first.message.split('\n', 1)[0]}`,
  ]);
  return rows.length === 0 ? undefined : table([['failed episodes', 'count', 'the first'], ...rows]);
}

function nextSteps({ shown, model }: RunDirectory, task: Task | undefined): string {
  const config = join(shown, 'config.yaml');
  const asked =
    typeof task?.prompt === 'string' ? task.prompt : task?.prompt.findLast(({ role }) => role === 'user')?.content;
  const chat = typeof task?.prompt === 'string' ? '' : '--data.apply_chat_template ';
  const prompt = JSON.stringify(asked ?? 'your question');
  return [
    `run directory: ${shown} (config.yaml, metrics.jsonl, episodes.jsonl, model)`,
    `ask the model:   npx tokenloop generate --model.model_name_or_path ${model} ${chat}--prompt ${prompt}`,
    `repeat the run:  npx tokenloop rl --config ${config}`,
    `another seed:    npx tokenloop rl --config ${config} --train.seed 7`,
  ].join('\n');
}

/** What an interrupted run leaves behind. */
export function howToContinue({ shown }: RunDirectory, checkpoint: string | undefined, command: string): string {
  if (checkpoint === undefined) return `interrupted before the first step was done; ${shown} holds nothing to continue`;
  return `interrupted; the checkpoint is ${checkpoint}\ncontinue with: npx tokenloop ${command} --resume ${shown}`;
}

/** The evaluation before training as the run's metrics.jsonl has it, also when the run was resumed since. */
export function firstEvaluation({ dir }: RunDirectory): Metrics | undefined {
  const [line = ''] = readFileSync(join(dir, 'metrics.jsonl'), 'utf8').split('\n', 1);
  const { step, ...metrics } = JSON.parse(line || '{}') as Record<string, number>;
  return step === 0 ? metrics : undefined;
}
