import { lastingOptions } from '../config/resume.ts';
import type { datasetOptions, supervisedOptions } from '../config/supervised.ts';
import { mapRows, type Rows } from '../data/rows.ts';
import type { modelOptions } from '../engines/onnx/options.ts';
import type { Options, Values } from '../options/option.ts';
import type { dataOptions } from '../rollout/options.ts';
import type { Renderer } from '../text/renderer.ts';
import type { RunEnd } from '../tracking/contracts.ts';
import { fanOut } from '../tracking/fan-out.ts';
import { jsonlTracker } from '../tracking/jsonl.ts';
import { newestCheckpoint } from '../training/checkpoint.ts';
import { type SupervisedOptions, type SupervisedStep, supervisedSteps } from '../training/supervised.ts';
import type { CommandContext } from './command.ts';
import { loadExampleRows, type Mixing } from './datasets.ts';
import { displayOf } from './display.ts';
import { type ShownPart, showExamples } from './dry-run.ts';
import { locateModel, loraOf, muonOf } from './model.ts';
import { type ResumePoint, resumePoint } from './resume.ts';
import { howToContinue } from './rl-report.ts';
import { bytesOf, openRunDirectory, type RunDirectory, runDirectory } from './run-directory.ts';
import { resultLine } from './summary.ts';
import { trackersFromOptions } from './trackers.ts';

/** A command that trains on rows of a file. */
export type SupervisedContext = CommandContext<typeof supervisedOptions>;

type ModelName = Values<Pick<typeof modelOptions, 'model.model_name_or_path' | 'model.model_revision'>>;

/** What a model reads, and how much of it. */
export interface ReaderOfText {
  readonly renderer: Renderer;
  readonly contextLength: number;
}

/** How rows become examples, and how those are shown. */
export interface Reading<E> {
  /** Makes an example of a row; throws for one that cannot be used. */
  readonly read: (text: ReaderOfText) => (row: unknown) => E;
  readonly shown: (example: E) => readonly ShownPart[];
  /** What the marked tokens are; without it none are. */
  readonly marks?: string;
}

/** What such a command has of its own. */
export interface SupervisedCommand<E> {
  readonly name: 'sft' | 'rm' | 'dpo';
  /** Every option of the command, for its `config.yaml`. */
  readonly options: Options;
  readonly text: ReaderOfText;
  readonly train: (options: SupervisedOptions<E>) => AsyncGenerator<SupervisedStep>;
  /** Writes the model after the last step. */
  readonly finish: (directory: string, data: Examples<E>) => Promise<void>;
  readonly shows: Shows;
}

/** Metrics without their group, and how they are called: the live line and the table show all, the result the results. */
export interface Shows {
  readonly live: readonly { readonly metric: string; readonly label: string }[];
  readonly results: readonly { readonly metric: string; readonly label: string }[];
}

export interface Examples<E> {
  readonly examples: Rows<E>;
  readonly heldOut: Rows<E> | undefined;
}

/** What an engine of the command is made of: the model that an option names, and the options that all models share. */
export async function engineSettings({ values, ...surroundings }: SupervisedContext) {
  const { engineFromOptions } = await import('../engines/onnx/index.ts');
  const source = values['model.model_name_or_path'];
  return {
    ...engineFromOptions(values),
    lora: loraOf(values, surroundings.cwd),
    model: await locateModel(source, values['model.model_revision'], surroundings),
    initSeed: values['train.seed'],
    adam: { betas: values['adam.betas'], eps: values['adam.eps'], weightDecay: values['adam.weight_decay'] },
    maxNorm: values.max_norm,
    muon: muonOf(values, '', values['adam.lr']),
    gradientCheckpointing: values['model.gradient_checkpointing_enable'],
  };
}

/** What the model of a command reads, without its weights. */
export async function readerOfText(
  { 'model.model_name_or_path': source, 'model.model_revision': revision }: ModelName,
  surroundings: Pick<SupervisedContext, 'cwd' | 'stderr' | 'interrupt'>,
): Promise<ReaderOfText> {
  const { loadRenderer } = await import('../text/chat-renderer.ts');
  const { readConfig } = await import('../nn/checkpoint/directory.ts');
  const model = await locateModel(source, revision, surroundings);
  return { renderer: await loadRenderer(model), contextLength: readConfig(model).config.maxPositions };
}

/** Shows what training would read; rows that cannot be used are counted, however many there are. */
export async function dryRun<E>(
  reading: Reading<E>,
  mixing: Mixing,
  context: Pick<SupervisedContext, 'cwd' | 'stdout' | 'stderr' | 'interrupt'> & {
    readonly values: ModelName;
  },
  samples = SAMPLES,
): Promise<undefined> {
  const text = await readerOfText(context.values, context);
  const counter = { malformed: 0 };
  const examples = await loadExampleRows(mixing, reading.read(text), counter, context);
  const { malformed } = counter;
  const parts = mapRows(examples, reading.shown);
  showExamples(parts, { codec: text.renderer, malformed, samples, marks: reading.marks }, context.stdout);
}

const SAMPLES = 3;

/** The command, from its options to the model; `open` makes the engine and what is done with it. */
export async function trainOnRows<E>(
  name: 'sft' | 'rm' | 'dpo',
  context: SupervisedContext,
  reading: Reading<E>,
  open: () => Promise<SupervisedCommand<E> & { readonly close: () => Promise<void> }>,
): Promise<undefined> {
  const { values, cwd, env = {}, configFile, stderr } = context;
  if (values.dry_run) return dryRun(reading, mixingOf(values), context);
  const began = performance.now();
  const openTrackers = trackersFromOptions(values, { env, cwd });
  const run = runDirectory(values, { command: name, configFile, cwd });
  const from = await resumePoint(run, values, stderr);
  const command = await open();
  try {
    const data = await loadExamples(reading.read(command.text), context);
    const notice = (message: string) => stderr.write(`${message}\n`);
    const resume = values['ckpt.load_enable'];
    const lock = await openRunDirectory(run, command.options, values as Values<Options>, { resume, notice });
    try {
      await learn(command, { data, run, from, began, openTrackers }, context);
    } finally {
      await lock.release();
    }
  } finally {
    await command.close();
  }
}

async function loadExamples<E>(read: (row: unknown) => E, context: SupervisedContext): Promise<Examples<E>> {
  const { values } = context;
  const examples = await loadExampleRows(mixingOf(values), read, values, context);
  const datasets = values['eval.dataset'];
  if (datasets === undefined) return { examples, heldOut: undefined };
  const [split, limit] = [values['eval.split'], values['eval.max_samples']];
  const heldOut = { datasets, split, usual: 'test', limit, renamed: values['data.column_mapping'] };
  return { examples, heldOut: await loadExampleRows(heldOut, read, values, context) };
}

/** The rows that are trained on. */
export function mixingOf(
  values: Values<typeof datasetOptions> &
    Partial<Values<Pick<typeof dataOptions, 'data.max_samples' | 'data.column_mapping'>>>,
): Mixing {
  return {
    datasets: values['data.dataset'],
    probabilities: values['data.dataset_probs'],
    split: values['data.dataset_split'],
    limit: values['data.max_samples'],
    renamed: values['data.column_mapping'],
  };
}

interface Job<E> {
  readonly data: Examples<E>;
  readonly run: RunDirectory;
  readonly from: ResumePoint | undefined;
  /** On the clock of `performance`. */
  readonly began: number;
  readonly openTrackers: ReturnType<typeof trackersFromOptions>;
}

async function learn<E>(
  { name, train, finish, shows }: SupervisedCommand<E>,
  { data, run, from, began, openTrackers }: Job<E>,
  context: SupervisedContext,
): Promise<void> {
  const { values, interrupt } = context;
  const { 'train.batch_size': batchSize, 'train.seed': seed } = values;
  const passes = supervisedSteps(data.examples.length, batchSize, values['train.max_epochs']);
  const steps = Math.min(passes, values['train.max_steps'] ?? passes);
  const { tracker, ...display } = displayOf(values, context, {
    totalSteps: steps,
    fields: [
      ...shows.live.map(({ metric, label }) => ({ metric: `train/${metric}`, label })),
      ...shows.live.map(({ metric, label }) => ({ metric: `eval/${metric}`, label: `held-out ${label}` })),
      { metric: 'timing/tokens_per_second', label: 'tokens/s', format: 'rate' },
    ],
  });
  const files = await jsonlTracker({
    dir: run.dir,
    ...(from && { resumeAfter: from.state.step, cursor: from.state.trackers?.jsonl }),
  });
  const place = { dir: run.dir, values, resumeAfter: from?.state.step, announce: display.say };
  const trackers = fanOut([tracker, files, ...(await openTrackers(place))], { report: display.warn });
  let end: RunEnd = 'failed';
  let [first, last]: (SupervisedStep | undefined)[] = [];
  try {
    const job = train({
      ...data,
      evaluateEvery: values['eval.steps'],
      steps,
      batchSize,
      seed,
      optimizer: {
        learningRate: values['adam.lr'],
        schedule: values.lr_scheduler,
        warmupRatio: values.lr_warmup_ratio,
        minLrRatio: values.min_lr_ratio,
      },
      checkpoints: {
        directory: run.checkpoints,
        every: values['ckpt.save_steps'],
        keep: values['ckpt.max_num'],
        maxBytes: bytesOf(values['ckpt.max_mem']),
        model: values['ckpt.save_hf'],
        config: lastingOptions(values),
        resume: from?.directory,
      },
      log: display.warn,
      record: ({ index, metrics }) => trackers.log({ step: index, metrics }),
      stop: interrupt.signal,
    });
    for await (const step of job) {
      first ??= step;
      last = step;
    }
    end = interrupt.signal.aborted ? 'interrupted' : 'finished';
  } finally {
    await trackers.close(end);
  }
  if (interrupt.signal.aborted) {
    display.report(howToContinue(run, newestCheckpoint(run.checkpoints), name));
    return;
  }
  await finish(run.model, data);
  if (first === undefined || last === undefined) {
    display.report(`nothing left to do: the run in ${run.shown} has made all its steps`);
    return;
  }
  const [group, held] = data.heldOut ? ['eval', 'held-out '] : ['train', ''];
  const ends = [first, last];
  const results = shows.results.map(({ metric, label }) => ({
    label: `${held}${label}`,
    values: ends.map(step => step.metrics[`${group}/${metric}`]!),
  }));
  const seconds = (performance.now() - began) / 1000;
  display.report(`model: ${run.model}\n${resultLine(results, { seconds, seed })}`);
}
