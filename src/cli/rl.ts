import { rlOptions } from '../config/rl.ts';
import type { Critic, PolicyEngine } from '../engines/contracts.ts';
import { serializeEpisode } from '../episode/serialize.ts';
import { overlapFromOptions } from '../rollout/overlap-options.ts';
import { type ConsoleField, type ConsoleStream, consoleTracker } from '../tracking/console.ts';
import { jsonlTracker } from '../tracking/jsonl.ts';
import { type TrainOptions, train } from '../train.ts';
import { checkpointStep, latestCheckpoint } from '../training/checkpoint.ts';
import type { TrainStep } from '../training/loop.ts';
import { agentRun, chooseAgent } from './agent.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { loadTasks } from './datasets.ts';
import { locateModel, loraOf } from './model.ts';
import { finalReport, firstEvaluation, howToContinue } from './rl-report.ts';
import { type RlValues, settingsOf } from './rl-settings.ts';
import { openRunDirectory, type RunDirectory, runDirectory } from './run-directory.ts';
import { describeEvaluation, type Reported, reported } from './summary.ts';

type RlContext = CommandContext<typeof rlOptions>;

export const command = defineCommand({
  name: 'rl',
  options: rlOptions,
  details: `Writes a run directory with config.yaml, metrics.jsonl, episodes.jsonl, checkpoints and the final model.
Ctrl-C finishes the step, writes a checkpoint and exits with 130; --ckpt.load_enable continues from there.`,
  run: context => reinforce(context, () => openPolicy(context)),
});

/** The policy's engine as the options describe it. */
async function openPolicy(context: RlContext): Promise<PolicyEngine> {
  const { engineFromOptions, onnxPolicy, separateFromOptions } = await import('../engines/onnx/index.ts');
  const { values } = context;
  const separate = separateFromOptions(values, overlapFromOptions(values, values['rollout.batch_size']).colocated);
  const lora = loraOf(values, context.cwd);
  const adam = {
    betas: values['actor.adam.betas'],
    eps: values['actor.adam.eps'],
    weightDecay: values['actor.adam.weight_decay'],
  };
  const model = await locateModel(values['actor.model_name_or_path'], values['actor.model_revision'], context);
  const engine = { ...engineFromOptions(values), separate };
  return onnxPolicy({ ...engine, model, lora, adam, maxNorm: values['actor.max_norm'] });
}

/** The value model, from the checkpoint of the policy when it has none of its own. */
async function openCritic(context: RlContext): Promise<Critic> {
  const { engineFromOptions, onnxCritic } = await import('../engines/onnx/index.ts');
  const { values } = context;
  const adam = {
    betas: values['critic.adam.betas'],
    eps: values['critic.adam.eps'],
    weightDecay: values['critic.adam.weight_decay'],
  };
  const { 'critic.model_name_or_path': own, 'critic.model_revision': revision } = values;
  const model = await (own === undefined
    ? locateModel(values['actor.model_name_or_path'], revision ?? values['actor.model_revision'], context)
    : locateModel(own, revision, context));
  // The adapter of the policy is none for a value model.
  const lora = loraOf({ ...values, 'ds.lora.adapter': undefined }, context.cwd);
  return onnxCritic({ ...engineFromOptions(values), model, lora, adam, maxNorm: values['critic.max_norm'] });
}

/** The command; `open` makes the engine, and `openValues` the critic of an algorithm that needs one. */
export async function reinforce(
  context: RlContext,
  open: () => Promise<PolicyEngine>,
  openValues: () => Promise<Critic> = () => openCritic(context),
): Promise<undefined> {
  const { values, cwd, stdout, stderr, configFile, interrupt } = context;
  const began = performance.now();
  const report = reported(values['eval.report']);
  const settings = settingsOf(values);
  const agent = await chooseAgent(values, cwd);
  const load = (path: string, limit: number | undefined) => loadTasks(path, values, { cwd, stderr, limit });
  const tasks = load(values['data.prompt_dataset'], values['data.max_samples']);
  const { 'eval.dataset': heldOut, 'ckpt.load_enable': resume } = values;
  const evaluation = heldOut && { ...evaluationOf(values), tasks: load(heldOut, values['eval.max_samples']) };
  const steps = stepsOf(values, tasks.length);

  // The engine comes before the directory: a model that is refused leaves nothing behind.
  const policy = await open();
  let critic: Critic | undefined;
  try {
    if (settings.critic) critic = await openValues();
    const run = runDirectory(values, { command: 'rl', configFile, cwd });
    await openRunDirectory(run, rlOptions, values, { resume });
    const checkpoint = resume ? latestCheckpoint(run.checkpoints) : undefined;
    if (resume && !checkpoint) stderr.write(`no checkpoint in ${run.checkpoints}: starting from the beginning\n`);
    const trackers = await trackersOf(values, { run, steps, report, checkpoint, stdout });
    const say = (message: string) => trackers.live.text?.(message);
    const criticOutput = values['critic.save_value_network'] ? `${run.model}_critic` : undefined;
    const options: TrainOptions = {
      ...settings,
      critic: critic && { ...settings.critic, model: critic, output: criticOutput },
      ...agentRun(values),
      policy,
      tasks,
      agent,
      steps,
      evaluation: evaluation || undefined,
      output: run.model,
      checkpoints: checkpointsOf(values, run),
      trackers: [trackers.live, trackers.files],
      stop: interrupt.signal,
      log: say,
    };
    let last: TrainStep | undefined;
    for await (const step of train(options)) {
      if (step.evaluation) say(describeEvaluation(step.index, report, step.evaluation.metrics));
      last = step;
    }
    if (interrupt.signal.aborted) {
      stdout.write(`${howToContinue(run, latestCheckpoint(run.checkpoints), 'rl')}\n`);
      return;
    }
    const seconds = (performance.now() - began) / 1000;
    const decode = (tokens: Int32Array) => policy.renderer.decode(tokens, { special: true });
    const parts = { before: firstEvaluation(run), last, report, run, seconds, seed: values['train.seed'], decode };
    stdout.write(`${finalReport(parts, stdout.isTTY ?? false)}\n`);
  } finally {
    await critic?.close();
    await policy.close();
  }
}

async function trackersOf(
  values: RlValues,
  parts: {
    readonly run: RunDirectory;
    readonly steps: number;
    readonly report: readonly Reported[];
    readonly checkpoint: string | undefined;
    readonly stdout: ConsoleStream;
  },
) {
  const { run, steps, report, checkpoint, stdout } = parts;
  const files = await jsonlTracker({
    dir: run.dir,
    ...(values['logger.episodes_enable'] ? { serialize: serializeEpisode } : {}),
    ...(checkpoint ? { resumeAfter: checkpointStep(checkpoint) } : {}),
  });
  const intervalMs = 1000 * values['logger.console_interval'];
  const pace = { intervalSteps: values['logger.logging_steps'], intervalMs };
  return { files, live: consoleTracker({ stream: stdout, totalSteps: steps, fields: fieldsOf(report), ...pace }) };
}

function checkpointsOf(values: RlValues, run: RunDirectory) {
  return {
    directory: run.checkpoints,
    every: values['ckpt.save_steps'],
    keep: values['ckpt.max_num'],
    resume: values['ckpt.load_enable'],
  };
}

function evaluationOf(values: RlValues) {
  return {
    every: values['eval.steps'],
    samples: values['eval.n_samples_per_prompt'],
    temperature: values['eval.temperature'],
    passScore: values['eval.pass_score'],
    maxFailureRate: values['rollout.max_failure_rate'],
  };
}

/** So many passes over the tasks, and no more than train.max_steps. */
function stepsOf(values: RlValues, tasks: number): number {
  const passes = Math.max(1, Math.floor((values['train.num_episodes'] * tasks) / values['rollout.batch_size']));
  return Math.min(passes, values['train.max_steps'] ?? passes);
}

function fieldsOf(report: readonly Reported[]): ConsoleField[] {
  return [
    { metric: 'rollout/reward_mean', label: 'reward' },
    ...report.map(({ label, metric }) => ({ metric: `rollout/${metric}`, label, format: 'percent' as const })),
    { metric: 'timing/tokens_per_second', label: 'tokens/s', format: 'rate' },
  ];
}
