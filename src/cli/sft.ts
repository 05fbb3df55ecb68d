import { lastingOptions } from '../config/resume.ts';
import { sftOptions } from '../config/sft.ts';
import { loadRows } from '../data/load.ts';
import type { Rows } from '../data/rows.ts';
import type { PolicyEngine } from '../engines/contracts.ts';
import type { RunEnd } from '../tracking/contracts.ts';
import { fanOut } from '../tracking/fan-out.ts';
import { jsonlTracker } from '../tracking/jsonl.ts';
import { newestCheckpoint } from '../training/checkpoint.ts';
import { exampleSequences, rowToExample } from '../training/conversations.ts';
import { type Demonstration, type SftStep, sft, sftSteps } from '../training/sft.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { loadMixture, type Mixing } from './datasets.ts';
import { displayOf } from './display.ts';
import { locateModel, loraOf, muonOf } from './model.ts';
import { type ResumePoint, resumePoint } from './resume.ts';
import { howToContinue } from './rl-report.ts';
import { bytesOf, openRunDirectory, type RunDirectory, runDirectory } from './run-directory.ts';
import { resultLine } from './summary.ts';
import { trackersFromOptions } from './trackers.ts';

type SftContext = CommandContext<typeof sftOptions>;

export const command = defineCommand({
  name: 'sft',
  options: sftOptions,
  details: `Writes a run directory with config.yaml, metrics.jsonl, checkpoints and the final model. A model directory without
weights is started from scratch, with weights drawn by train.seed.`,
  run: context => fineTune(context, () => openPolicy(context)),
});

async function openPolicy(context: SftContext): Promise<PolicyEngine> {
  const { engineFromOptions, onnxPolicy } = await import('../engines/onnx/index.ts');
  const { values } = context;
  const lora = loraOf(values, context.cwd);
  return onnxPolicy({
    ...engineFromOptions(values),
    lora,
    model: await locateModel(values['model.model_name_or_path'], values['model.model_revision'], context),
    initSeed: values['train.seed'],
    adam: { betas: values['adam.betas'], eps: values['adam.eps'], weightDecay: values['adam.weight_decay'] },
    maxNorm: values.max_norm,
    muon: muonOf(values, '', values['adam.lr']),
    gradientCheckpointing: values['model.gradient_checkpointing_enable'],
  });
}

/** The command; `open` makes the engine. */
export async function fineTune(context: SftContext, open: () => Promise<PolicyEngine>): Promise<undefined> {
  const { values, cwd, env = {}, configFile, stderr } = context;
  const began = performance.now();
  const openTrackers = trackersFromOptions(values, { env, cwd });
  const run = runDirectory(values, { command: 'sft', configFile, cwd });
  const from = await resumePoint(run, values, stderr);
  const policy = await open();
  try {
    const data = {
      datasets: values['data.dataset'],
      probabilities: values['data.dataset_probs'],
      split: values['data.dataset_split'],
      limit: values['data.max_samples'],
    };
    const examples = await demonstrations(data, policy, context);
    const heldOutPath = values['eval.dataset'];
    const held = {
      datasets: heldOutPath ?? [],
      split: values['eval.split'],
      usual: 'test',
      limit: values['eval.max_samples'],
    };
    const heldOut = heldOutPath ? await demonstrations(held, policy, context) : undefined;
    const notice = (message: string) => stderr.write(`${message}\n`);
    const lock = await openRunDirectory(run, sftOptions, values, { resume: values['ckpt.load_enable'], notice });
    try {
      await learn({ examples, heldOut, from }, policy, run, context, { began, openTrackers });
    } finally {
      await lock.release();
    }
  } finally {
    await policy.close();
  }
}

/** The rows of a dataset as sequences. A row that does not fit the model's window is malformed. */
function demonstrations(
  mixing: Mixing,
  { renderer, learner }: PolicyEngine,
  { values, ...surroundings }: SftContext,
): Promise<Rows<Demonstration>> {
  const columns = {
    inputKey: values['data.input_key'],
    outputKey: values['data.output_key'],
    inputTemplate: values['data.input_template'],
    applyChatTemplate: values['data.apply_chat_template'],
  };
  const read = (row: unknown): Demonstration => {
    const sequences = exampleSequences(rowToExample(row, columns), renderer);
    const length = Math.max(...sequences.map(({ tokens }) => tokens.length));
    if (length <= learner.contextLength) return sequences;
    throw new Error(`the example has ${length} tokens and the model sees ${learner.contextLength}; shorten it`);
  };
  return loadMixture(mixing, values, surroundings, ({ files }, _several, onMalformed) =>
    loadRows(files, { map: read, limit: mixing.limit, onMalformed }),
  );
}

async function learn(
  {
    from,
    ...data
  }: {
    readonly examples: Rows<Demonstration>;
    readonly heldOut: Rows<Demonstration> | undefined;
    readonly from: ResumePoint | undefined;
  },
  { learner }: PolicyEngine,
  run: RunDirectory,
  context: SftContext,
  { began, openTrackers }: { readonly began: number; readonly openTrackers: ReturnType<typeof trackersFromOptions> },
): Promise<void> {
  const { values, interrupt } = context;
  const { 'train.batch_size': batchSize, 'train.seed': seed } = values;
  const passes = sftSteps(data.examples.length, batchSize, values['train.max_epochs']);
  const steps = Math.min(passes, values['train.max_steps'] ?? passes);
  const { tracker, ...display } = displayOf(values, context, {
    totalSteps: steps,
    fields: [
      { metric: 'train/gpt_loss', label: 'loss' },
      { metric: 'eval/gpt_loss', label: 'held-out loss' },
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
  let [first, last]: (SftStep | undefined)[] = [];
  try {
    const job = sft({
      learner,
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
    display.report(howToContinue(run, newestCheckpoint(run.checkpoints), 'sft'));
    return;
  }
  await learner.export(run.model);
  if (first === undefined || last === undefined) {
    display.report(`nothing left to do: the run in ${run.shown} has made all its steps`);
    return;
  }
  const name = data.heldOut ? 'eval/gpt_loss' : 'train/gpt_loss';
  const loss = {
    label: data.heldOut ? 'held-out loss' : 'loss',
    values: [first, last].map(step => step.metrics[name]!),
  };
  const seconds = (performance.now() - began) / 1000;
  display.report(`model: ${run.model}\n${resultLine([loss], { seconds, seed })}`);
}
