import type { EpisodeLimits, Executor } from './agents/contracts.ts';
import { singleTurn } from './agents/single-turn.ts';
import type { Algorithm } from './algorithms/algorithm.ts';
import { type Curation, notRemoved } from './algorithms/curation.ts';
import type { GroupFilter } from './algorithms/filters.ts';
import { klController } from './algorithms/kl.ts';
import { mapRows, type Rows } from './data/rows.ts';
import { type Critic, DEFAULT_SAMPLING, type PolicyEngine, type SamplingParams } from './engines/contracts.ts';
import { checkSampling } from './engines/sampling.ts';
import type { Awaitable } from './envs/contracts.ts';
import type { Task } from './episode/task.ts';
import { perSample, type RewardInput, type RewardOutput } from './rewards/contracts.ts';
import { admissionOf, checkChoice, checkEngine, type PipelineChoice, pipelineOf } from './rollout/choose.ts';
import { FailureRateError } from './rollout/failures.ts';
import type { RolloutContext } from './rollout/groups.ts';
import { TaskOrder } from './rollout/order.ts';
import type { GroupSelection } from './rollout/selection.ts';
import { type TaskInput, toTask } from './rollout/tasks.ts';
import type { RunEnd, Tracker } from './tracking/contracts.ts';
import { type FanOut, fanOut } from './tracking/fan-out.ts';
import { type AverageOptions, checkAverage, onAverage } from './training/average.ts';
import { Checkpointer, type CheckpointOptions } from './training/checkpointer.ts';
import { refuseSenseless } from './training/combinations.ts';
import { type CriticOptions, criticTrainer } from './training/critic.ts';
import { type Evaluation, type EvaluationPlan, evaluate } from './training/evaluate.ts';
import { evaluator } from './training/evaluator.ts';
import { Baseline } from './training/gain.ts';
import { loop, type TrainStep } from './training/loop.ts';
import { learningRates, type OptimizerOptions, totalUpdates } from './training/optimizer.ts';
import { followPolicy, type ReferenceUpdate } from './training/reference.ts';
import { overlapNotice, rowsDigest } from './training/task-digest.ts';

/** What an agent is run with, in training and in evaluation alike. */
export interface AgentOptions {
  /** How a task is attempted; single-turn with `reward` when not given. */
  readonly agent?: Executor | undefined;
  /** Scores one answer of a single-turn agent. */
  readonly reward?: ((input: RewardInput) => Awaitable<number | RewardOutput>) | undefined;
  /** Temperature 1, no truncation and the checkpoint's stop tokens when not given; no stop tokens for an empty list. */
  readonly sampling?: Partial<Omit<SamplingParams, 'maxTokens'>> | undefined;
  /** Environments and rewards read an answer with the stop string that ended it; up to it when not given. */
  readonly includeStop?: boolean | undefined;
  /** 8 turns, the context length of the policy, 60 s a call when not given. */
  readonly limits?: { readonly [K in keyof EpisodeLimits]?: number | undefined } | undefined;
  /** Every random choice derives from it; 42 when not given. */
  readonly seed?: number | undefined;
  /** Same seed, same metrics and weights, whatever the order in which environments answer (rollout/admission.ts). */
  readonly deterministic?: boolean | undefined;
  /** Aborts at once: what is under way rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Told about what does not stop the run (a tracker that failed …); Node's process warnings when not given. */
  readonly log?: ((message: string) => void) | undefined;
}

export interface TrainOptions extends AgentOptions {
  /** An engine, which stays the caller's to close; or a function that makes one, which is closed with the run. */
  readonly policy: PolicyEngine | (() => Awaitable<PolicyEngine>);
  /** An array, or rows that are read when their turn comes. */
  readonly tasks: Rows<Task | TaskInput>;
  readonly algorithm: Algorithm;
  /** For an algorithm that needs one: the value model (closed with the run when a function makes it), and how it learns. */
  readonly critic?:
    | (CriticOptions & {
        readonly model: Critic | (() => Awaitable<Critic>);
        /** Directory for the trained critic, written after the last step. */
        readonly output?: string | undefined;
      })
    | undefined;
  /** How the reference of the KL term follows the policy; it stays the initial policy when not given. */
  readonly reference?: ReferenceUpdate | undefined;
  /** Keeps an exponential moving average of the weights, moved at each update. */
  readonly average?: AverageOptions | undefined;
  /** Penalties and filters of episodes, before they are compared. */
  readonly curation?: Curation | undefined;
  /** Dynamic sampling: groups that the filter rejects are replaced by groups of other tasks. */
  readonly selection?: (Omit<GroupSelection, 'accepts'> & { readonly filter: GroupFilter }) | undefined;
  /** Whether sampling and learning take turns, which they do when it is not given, or overlap, and how. */
  readonly pipeline?: PipelineChoice | undefined;
  /** Train each turn as a row of its own, with the context it was sampled in; one row an episode when not given. */
  readonly turnRows?: boolean | undefined;
  /** Episodes per task; 8 when not given. */
  readonly groupSize?: number | undefined;
  /** Tasks per step; 16 when not given. */
  readonly groupsPerStep?: number | undefined;
  /** One pass over the tasks when not given. */
  readonly steps?: number | undefined;
  readonly optimizer?: OptimizerOptions | undefined;
  readonly evaluation?: (EvaluationPlan & { readonly tasks: readonly (Task | TaskInput)[] }) | undefined;
  readonly checkpoints?: CheckpointOptions | undefined;
  /** Directory for the trained model (Hugging Face layout), written after the last step. */
  readonly output?: string | undefined;
  readonly trackers?: readonly Tracker[] | undefined;
  /** In [0, 1]: the run stops when a larger share of a step's episodes fails; 0.5 when not given. */
  readonly maxFailureRate?: number | undefined;
  /** Ends the run in good order: the step under way is finished and a checkpoint written, where there are any. */
  readonly stop?: AbortSignal | undefined;
}

/**
 * Trains a policy: `for await (const step of train({ … })) …`. Leaving the loop early shuts everything down. The names
 * of a step's metrics are listed in docs/metrics.md.
 */
export function train(options: TrainOptions): AsyncIterableIterator<TrainStep> {
  const left = new AbortController();
  const forward = () => left.abort(options.signal?.reason);
  if (options.signal?.aborted) forward();
  else options.signal?.addEventListener('abort', forward, { once: true });
  const steps = run(options, left.signal);
  return {
    next: () => steps.next(),
    return: () => {
      left.abort(new Error('the run was left'));
      return steps.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* run(options: TrainOptions, signal: AbortSignal): AsyncGenerator<TrainStep, undefined> {
  const { algorithm, seed = 42, groupSize = 8, groupsPerStep = 16, optimizer = {}, evaluation, checkpoints } = options;
  const { maxFailureRate = 0.5, output, stop = new AbortController().signal, log = warn } = options;
  const { curation = {}, turnRows = false, reference, average } = options;
  refuseSenseless({ algorithm, groupSize, turnRows, reference, critic: options.critic !== undefined });
  checkChoice(options.pipeline ?? {}, {
    groups: groupsPerStep,
    deterministic: options.deterministic ?? false,
    oversampling: options.selection?.oversampling !== undefined,
    evaluatesAverage: evaluation?.average ?? false,
  });
  const tasks = toTrainOn(options.tasks);
  const heldOut = evaluation && complete(evaluation.tasks, 'eval');
  const overlap = heldOut && overlapNotice(tasks, heldOut);
  if (overlap) log(overlap);
  const steps = options.steps ?? Math.max(1, Math.floor(tasks.length / groupsPerStep));
  const executor = executorOf(options);
  const trackers = fanOut(options.trackers ?? [], { report: log });
  let end: RunEnd = 'failed';
  let owned: PolicyEngine | undefined;
  let ownedCritic: Critic | undefined;
  try {
    if (typeof options.policy === 'function') owned = await options.policy();
    const policy = owned ?? (options.policy as PolicyEngine);
    const { learner, sampler } = policy;
    if (average) checkAverage(learner, average);
    else if (evaluation?.average) throw new Error('eval.ema_enable evaluates an average that train.enable_ema keeps');
    checkEngine(options.pipeline ?? {}, policy);
    const context = rolloutContext(policy, executor, { ...options, signal });
    const order = new TaskOrder(tasks, seed);
    const { minimumGroup, needsGreedy: greedy } = algorithm.estimator;
    const selection = selectionOf(options, minimumGroup);
    const shape = { groups: groupsPerStep, samples: groupSize, minimumGroup, greedy };
    const parts = { sampler, order, context, ...shape, maxFailureRate, selection };
    const pipeline = pipelineOf(parts, learner, options.pipeline ?? {});
    const kl = algorithm.kl && klController(algorithm.kl);
    const updates = totalUpdates(optimizer, { steps, episodesPerStep: groupsPerStep * groupSize });
    let critic: ReturnType<typeof criticTrainer> | undefined;
    if (options.critic) {
      const { model, learningRate = 9e-6, ...learning } = options.critic;
      if (typeof model === 'function') ownedCritic = await model();
      const rates = learningRates({ ...learning, learningRate }, updates);
      critic = criticTrainer(ownedCritic ?? (model as Critic), learning, rates);
    }
    const trained = { learner, critic: critic?.critic };
    const baseline = new Baseline();
    const checkpointer =
      checkpoints &&
      new Checkpointer(checkpoints, {
        ...trained,
        data: pipeline,
        rows: rowsDigest(tasks),
        kl,
        baseline,
        seed,
        trackers: () => trackers.cursors(),
        log,
      });
    const evaluated =
      heldOut && evaluator({ tasks: heldOut, plan: evaluation, context, learner, sampler, baseline, steps });

    const start = (await checkpointer?.restore()) ?? { step: 0, updates: 0 };
    if (start.step > 0) await pipeline.publish(learner);
    let progress = start;
    end = 'interrupted';
    try {
      yield* loop({
        pipeline,
        learner,
        algorithm,
        kl,
        critic,
        curation,
        turnRows,
        follow: step => followPolicy(learner, reference, step),
        update: {
          batchSize: optimizer.batchSize,
          epochs: optimizer.epochs ?? 1,
          temperature: context.params.temperature,
          learningRate: learningRates(optimizer, updates),
          averageBeta: average && (average.beta ?? 0.992),
        },
        seed,
        start,
        steps,
        evaluate: async step => evaluated?.(step),
        record: async (step, now) => {
          progress = now;
          await track(trackers, step);
          await checkpointer?.after(progress, step.evaluation?.metrics);
        },
        rescue: async () => (await checkpointer?.rescue()) ?? 'There is no checkpoint directory to keep the weights in',
        stop,
      });
    } catch (error) {
      end = 'failed';
      // Episodes that stop a run are the ones its user needs to see.
      if (error instanceof FailureRateError) {
        const { phase, episodes } = error;
        await trackers.episodes({ step: progress.step + (phase === 'train' ? 1 : 0), phase, episodes });
        if (checkpointer && progress.step > 0) {
          const kept = await checkpointer.saveBeforeEnd(progress);
          throw new FailureRateError(`${error.message}\n${kept}`, error, { cause: error });
        }
      }
      throw error;
    }
    if (stop.aborted && progress.step > 0) await checkpointer?.save(progress);
    if (!stop.aborted) {
      if (output !== undefined) await learner.export(output);
      if (average?.output !== undefined) await onAverage(learner, () => learner.export(average.output!));
      if (options.critic?.output !== undefined) await critic?.critic.export(options.critic.output);
      end = 'finished';
    }
  } finally {
    try {
      await executor.close?.();
    } finally {
      await trackers.close(end);
      await ownedCritic?.close();
      await owned?.close();
    }
  }
}

/** What an evaluation needs of a policy. */
export type Evaluable = Pick<PolicyEngine, 'sampler' | 'renderer'>;

/** Evaluates a policy without training it: its agent attempts every task. */
export async function evaluatePolicy(
  options: AgentOptions &
    EvaluationPlan & { readonly policy: Evaluable; readonly tasks: readonly (Task | TaskInput)[] },
): Promise<Evaluation> {
  const executor = executorOf(options);
  try {
    const context = rolloutContext(options.policy, executor, options);
    const { version } = options.policy.sampler;
    return await evaluate(complete(options.tasks, 'eval'), options, context, { version });
  } finally {
    await executor.close?.();
  }
}

async function track(trackers: FanOut, { index, metrics, episodes, evaluation }: TrainStep): Promise<void> {
  await trackers.log({ step: index, metrics });
  if (episodes.length > 0) await trackers.episodes({ step: index, phase: 'train', episodes });
  if (evaluation) await trackers.episodes({ step: index, phase: 'eval', episodes: evaluation.episodes });
}

/** How the policy's episodes are run. Throws on options that make no sense. */
function rolloutContext(
  policy: Evaluable,
  executor: Executor,
  options: AgentOptions & Pick<TrainOptions, 'pipeline'>,
): RolloutContext {
  const { sampler, renderer } = policy;
  const { contextLength } = sampler;
  const { seed = 42, sampling = {}, deterministic = false, log = warn } = options;
  const limits: EpisodeLimits = {
    maxTurns: options.limits?.maxTurns ?? 8,
    maxTokens: Math.min(options.limits?.maxTokens ?? contextLength, contextLength),
    maxNewTokens: options.limits?.maxNewTokens ?? contextLength,
    callTimeoutMs: options.limits?.callTimeoutMs ?? 60_000,
    episodeTimeoutMs: options.limits?.episodeTimeoutMs ?? 600_000,
  };
  const params = { ...DEFAULT_SAMPLING, stopTokens: renderer.stopTokens, ...sampling, maxTokens: limits.maxNewTokens };
  checkSampling(params, renderer.vocabularySize);
  if (params.topP < 1 || params.topK > 0 || params.minP > 0) {
    log(
      'top-p, top-k or min-p is on: the log-probs of sampled tokens are those of the truncated distribution, which the learner does not reproduce, so training is slightly off-policy (train/vllm_kl)',
    );
  }
  return {
    executor,
    admission: admissionOf(sampler, { ...options.pipeline, deterministic }),
    contextLength,
    renderer,
    params,
    limits,
    includeStop: options.includeStop,
    seed,
    signal: options.signal ?? new AbortController().signal,
    log,
  };
}

/** The agent of the options; single-turn when there is only a reward. */
function executorOf({ agent, reward }: AgentOptions): Executor {
  if (agent !== undefined && reward !== undefined) {
    throw new Error('agent and reward are both given: give the reward to the agent, or leave the agent out');
  }
  if (agent !== undefined) return agent;
  if (reward !== undefined) return singleTurn({ reward: perSample(reward) });
  throw new Error('neither agent nor reward is given: there is nothing to tell a good answer from a bad one');
}

/** A dataset that is read as it is needed has compared the ids of its rows when it was loaded. */
function toTrainOn(inputs: Rows<Task | TaskInput>): Rows<Task> {
  if (Array.isArray(inputs)) return complete(inputs, 'tasks');
  return mapRows(inputs, (input, index) => toTask(input, index, 'tasks'));
}

/** Complete tasks, whose ids tell them apart: groups and random streams are named after them. */
function complete(inputs: readonly (Task | TaskInput)[], source: string): Task[] {
  const tasks = inputs.map((input, index) => toTask(input, index, source));
  const seen = new Set<string>();
  for (const { id } of tasks) {
    if (seen.has(id)) throw new Error(`two tasks have the id ${JSON.stringify(id)}; give each its own, or none`);
    seen.add(id);
  }
  return tasks;
}

/** Groups are judged as they will be compared: without the episodes that the curation removes. */
function selectionOf({ selection, curation = {} }: TrainOptions, minimumGroup: number): GroupSelection | undefined {
  if (selection === undefined) return undefined;
  const { filter, ...factors } = selection;
  return {
    ...factors,
    accepts: episodes => {
      const compared = notRemoved(episodes, curation);
      return compared.length >= minimumGroup && filter(compared.map(({ score }) => score));
    },
  };
}

function warn(message: string): void {
  process.emitWarning(message);
}
