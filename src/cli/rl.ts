import { join } from 'node:path';
import { closedOnce } from '../agents/closed-once.ts';
import type { Executor } from '../agents/contracts.ts';
import { FidelityReport } from '../agents/recorded/fidelity.ts';
import { ConfigError } from '../config/error.ts';
import { lastingOptions } from '../config/resume.ts';
import { rlOptions } from '../config/rl.ts';
import type { Critic, PolicyEngine } from '../engines/contracts.ts';
import { serializeEpisode } from '../episode/serialize.ts';
import type { RewardFunction } from '../rewards/contracts.ts';
import { overlapFromOptions } from '../rollout/overlap-options.ts';
import type { ConsoleField } from '../tracking/console.ts';
import { jsonlTracker } from '../tracking/jsonl.ts';
import { failureLedger } from '../tracking/ledger.ts';
import { type TrainOptions, train } from '../train.ts';
import { newestCheckpoint, readTrainerState } from '../training/checkpoint.ts';
import type { CheckpointOptions } from '../training/checkpointer.ts';
import type { TrainStep } from '../training/loop.ts';
import { agentRun, chooseAgent } from './agent.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { loadEvaluationTasks, loadTrainingTasks, tasksWithRoom } from './datasets.ts';
import { displayOf, rolloutFields } from './display.ts';
import { locateModel, loraOf, muonOf } from './model.ts';
import { usesNemoGym } from './nemo-gym.ts';
import { type ResumePoint, resumePoint } from './resume.ts';
import { openModelReward } from './reward-model.ts';
import { describeFailures, finalReport, firstEvaluation, howToContinue } from './rl-report.ts';
import { type RlValues, samplingRemark, settingsOf } from './rl-settings.ts';
import { bytesOf, openRunDirectory, type RunDirectory, runDirectory } from './run-directory.ts';
import { describeEvaluation, type Reported, reported } from './summary.ts';
import { tracedAgent, trackersFromOptions } from './trackers.ts';

type RlContext = CommandContext<typeof rlOptions>;

export const command = defineCommand({
  name: 'rl',
  options: rlOptions,
  details: `Writes a run directory with config.yaml, metrics.jsonl, episodes.jsonl, checkpoints and the final model.
Ctrl-C finishes the step, writes a checkpoint and exits with 130; --resume <run directory> continues from there, with
the options of that run.`,
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
  const gradientCheckpointing = values['actor.gradient_checkpointing_enable'];
  const muon = muonOf(values, 'actor.', values['actor.adam.lr']);
  const engine = {
    ...engineFromOptions(values),
    separate,
    gradientCheckpointing,
    muon,
    samplingDtype: values['rollout.dtype'],
  };
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
  // The adapter of the policy is none for a value model, which without one is trained in full.
  const full = values['ds.lora.rank'] === 0 && { 'ds.load_in_4bit': false, 'ds.load_in_8bit': false };
  const lora = loraOf({ ...values, ...full, 'ds.lora.adapter': undefined }, context.cwd);
  const gradientCheckpointing =
    values['critic.gradient_checkpointing_enable'] ?? values['actor.gradient_checkpointing_enable'];
  const maxNorm = values['critic.max_norm'];
  const muon = muonOf(values, 'critic.', values['critic.adam.lr'] ?? 9e-6);
  return onnxCritic({ ...engineFromOptions(values), model, lora, adam, muon, maxNorm, gradientCheckpointing });
}

/** What is opened when its turn comes. */
interface Opening {
  readonly policy: () => Promise<PolicyEngine>;
  /** The critic of an algorithm that needs one. */
  readonly critic: () => Promise<Critic>;
}

/** The command; `open` makes the engine, `openValues` and `openModel` the critic and the reward model where there are. */
export async function reinforce(
  context: RlContext,
  open: () => Promise<PolicyEngine>,
  openValues: () => Promise<Critic> = () => openCritic(context),
  openModel: () => Promise<RewardFunction> = () => openModelReward(context),
): Promise<undefined> {
  const { values, cwd, env = {}, stderr } = context;
  const began = performance.now();
  const openTrackers = trackersFromOptions(values, { env, cwd });
  const report = reported(values['eval.report']);
  const settings = settingsOf(values);
  const remark = samplingRemark(values, settings.algorithm);
  if (remark !== undefined) stderr.write(`${remark}\n`);
  const print = (line: string) => stderr.write(`${line}\n`);
  const chosen = await chooseAgent(values, { cwd, env, print, openModel }, values);
  const agent = closedOnce(await tracedAgent(chosen, values));
  try {
    const opening = { policy: open, critic: openValues };
    await learn({ agent, settings, report, openTrackers, began }, opening, context);
  } finally {
    await agent.close?.();
  }
}

interface Prepared {
  readonly agent: Executor;
  readonly settings: ReturnType<typeof settingsOf>;
  readonly report: readonly Reported[];
  readonly openTrackers: ReturnType<typeof trackersFromOptions>;
  /** When the command began, on the clock of `performance.now`. */
  readonly began: number;
}

async function learn(
  { agent, settings, report, openTrackers, began }: Prepared,
  open: Opening,
  context: RlContext,
): Promise<undefined> {
  const { values, cwd, stdout, stderr, configFile, interrupt } = context;
  const loaded = await loadTrainingTasks(
    {
      datasets: values['data.prompt_dataset'],
      probabilities: values['data.prompt_probs'],
      split: values['data.prompt_split'],
      limit: values['data.max_samples'],
    },
    values,
    context,
  );
  const evaluation = await evaluationOf(values, context);
  const run = runDirectory(values, { command: 'rl', configFile, cwd });
  const average = averageOf(values, run);
  const from = await resumePoint(run, values, stderr);

  // The engine comes before the directory: a model that is refused leaves nothing behind.
  const policy = await open.policy();
  let critic: Critic | undefined;
  let lock: Awaited<ReturnType<typeof openRunDirectory>> | undefined;
  try {
    const room = { renderer: policy.renderer, contextLength: policy.learner.contextLength };
    const ownAgent =
      values['agent.env'] !== undefined || values['train.agent_func_path'] !== undefined || usesNemoGym(values);
    // Other agents make their prompts of tasks themselves.
    const tasks = ownAgent ? loaded : tasksWithRoom(loaded, room, values, context);
    const steps = stepsOf(values, tasks.length);
    if (settings.critic) critic = await open.critic();
    const notice = (message: string) => stderr.write(`${message}\n`);
    lock = await openRunDirectory(run, rlOptions, values, { resume: values['ckpt.load_enable'], notice });
    const { ledger, files } = await filesOf(values, run, from);
    const { tracker, ...display } = displayOf(values, context, { totalSteps: steps, fields: fieldsOf(report) });
    const decode = (tokens: Int32Array) => policy.renderer.decode(tokens, { special: true });
    const others = await openTrackers({
      dir: run.dir,
      values,
      resumeAfter: from?.state.step,
      decode,
      announce: display.say,
    });
    const criticOutput = values['critic.save_value_network'] ? `${run.model}_critic` : undefined;
    const options: TrainOptions = {
      ...settings,
      critic: critic && { ...settings.critic, model: critic, output: criticOutput },
      ...agentRun(values),
      average,
      policy,
      tasks,
      agent,
      steps,
      evaluation,
      output: run.model,
      checkpoints: checkpointsOf(values, run, from),
      trackers: [tracker, files, ledger, ...others],
      stop: interrupt.signal,
      log: display.warn,
    };
    const fidelity = new FidelityReport();
    let last: TrainStep | undefined;
    try {
      for await (const step of train(options)) {
        if (step.evaluation) display.say(describeEvaluation(step.index, report, step.evaluation.metrics));
        last = step;
        fidelity.add(step.episodes);
        fidelity.addMismatch(step.metrics['train/mismatch_max']);
      }
    } finally {
      const failures = describeFailures(ledger.entries);
      if (failures !== undefined) display.warn(failures);
    }
    const newest = newestCheckpoint(run.checkpoints);
    if (interrupt.signal.aborted) {
      display.report(howToContinue(run, newest, 'rl'));
      return;
    }
    const seconds = (performance.now() - began) / 1000;
    const best = newest === undefined ? undefined : readTrainerState(newest).best;
    const parts = {
      before: firstEvaluation(run),
      best,
      last,
      report,
      run,
      seconds,
      seed: values['train.seed'],
      decode,
      fidelity: fidelity.describe(),
    };
    display.report(finalReport(parts, stdout.color ?? false));
  } finally {
    await critic?.close();
    await policy.close();
    await lock?.release();
  }
}

/** What every run keeps in its directory. */
async function filesOf(values: RlValues, run: RunDirectory, from: ResumePoint | undefined) {
  const cursors = from?.state.trackers ?? {};
  const files = await jsonlTracker({
    dir: run.dir,
    ...(values['logger.episodes_enable'] ? { serialize: serializeEpisode } : {}),
    ...(from && { resumeAfter: from.state.step, cursor: cursors.jsonl }),
  });
  return { files, ledger: await failureLedger(join(run.dir, 'failures.json'), cursors['failure ledger']) };
}

function checkpointsOf(values: RlValues, run: RunDirectory, from: ResumePoint | undefined): CheckpointOptions {
  const { 'ckpt.best_metric_key': metric, 'ckpt.best_metric_mode': mode } = values;
  return {
    directory: run.checkpoints,
    every: values['ckpt.save_steps'],
    keep: values['ckpt.max_num'],
    maxBytes: bytesOf(values['ckpt.max_mem']),
    model: values['ckpt.save_hf'],
    best: metric === 'none' ? false : { metric, mode },
    config: lastingOptions(values),
    resume: from?.directory,
  };
}

async function evaluationOf(values: RlValues, context: RlContext): Promise<TrainOptions['evaluation']> {
  const { 'eval.dataset': heldOut, 'eval.max_samples': limit, 'ckpt.best_metric_key': key = 'none' } = values;
  if (heldOut === undefined) {
    if (key !== 'none') throw new ConfigError(['ckpt.best_metric_key compares evaluations: give eval.dataset, too']);
    if (values['eval.ema_enable']) throw new ConfigError(['eval.ema_enable needs tasks: give eval.dataset, too']);
    return undefined;
  }
  return {
    tasks: await loadEvaluationTasks(heldOut, values, context, { limit, split: values['eval.split'] }),
    every: values['eval.steps'],
    samples: values['eval.n_samples_per_prompt'],
    temperature: values['eval.temperature'],
    greedy: values['eval.greedy_enable'],
    average: values['eval.ema_enable'],
    passScore: values['eval.pass_score'],
    maxFailureRate: values['rollout.max_failure_rate'],
  };
}

function averageOf(values: RlValues, run: RunDirectory): TrainOptions['average'] {
  const { 'train.enable_ema': enabled, 'train.ema_beta': beta } = values;
  if (enabled) return { beta, output: `${run.model}_ema` };
  if (beta !== undefined) throw new ConfigError(['train.ema_beta is for train.enable_ema, which is off']);
  if (values['eval.ema_enable']) throw new ConfigError(['eval.ema_enable is for train.enable_ema, which is off']);
  return undefined;
}

/** So many passes over the tasks, and no more than train.max_steps. */
function stepsOf(values: RlValues, tasks: number): number {
  const passes = Math.max(1, Math.floor((values['train.num_episodes'] * tasks) / values['rollout.batch_size']));
  return Math.min(passes, values['train.max_steps'] ?? passes);
}

function fieldsOf(report: readonly Reported[]): ConsoleField[] {
  return rolloutFields(
    report.map(({ label, metric }) => ({ metric: `rollout/${metric}`, label, format: 'percent' as const })),
  );
}
