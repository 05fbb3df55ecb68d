import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Task } from '../episode/task.ts';
import type { TrainStep } from '../training/loop.ts';
import { printEpisode } from './print-episode.ts';
import type { RunDirectory } from './run-directory.ts';
import { comparison, type Metrics, overall, type Reported, resultLine } from './summary.ts';

export interface FinalParts {
  /** Evaluation before training. */
  readonly before: Metrics | undefined;
  /** The last step; undefined when there was nothing left to do. */
  readonly last: TrainStep | undefined;
  readonly report: readonly Reported[];
  readonly run: RunDirectory;
  readonly seconds: number;
  readonly seed: number;
  readonly decode: (tokens: Int32Array) => string;
}

const SAMPLES = 3;

/** What is shown when a run is done: comparison, sample episodes, where everything is, and the result line. */
export function finalReport(parts: FinalParts, color: boolean): string {
  const { before, last, report, run, seconds, seed, decode } = parts;
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
    nextSteps(run, episodes[0]?.task),
    resultLine(numbers, { seconds, seed }),
  ].join('\n\n');
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
  const flags = `--config ${join(shown, 'config.yaml')} --run.dir ${shown} --ckpt.load_enable`;
  return `interrupted; the checkpoint is ${checkpoint}\ncontinue with: npx tokenloop ${command} ${flags}`;
}

/** The evaluation before training as the run's metrics.jsonl has it, also when the run was resumed since. */
export function firstEvaluation({ dir }: RunDirectory): Metrics | undefined {
  const [line = ''] = readFileSync(join(dir, 'metrics.jsonl'), 'utf8').split('\n', 1);
  const { step, ...metrics } = JSON.parse(line || '{}') as Record<string, number>;
  return step === 0 ? metrics : undefined;
}
