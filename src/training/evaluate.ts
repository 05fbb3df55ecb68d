import { type Episode, episodeReward } from '../episode/episode.ts';
import { boundary, messageOf } from '../episode/failure.ts';
import type { Task } from '../episode/task.ts';
import { checkFailureRate } from '../rollout/failures.ts';
import { type EpisodeGroup, episodesOf, type RolloutContext, runGroups } from '../rollout/groups.ts';
import { episodeMetrics, mean } from '../rollout/metrics.ts';
import { seedOf } from '../rollout/seeds.ts';
import { standardError } from './bootstrap.ts';
import type { Baseline } from './gain.ts';

/** How a policy is evaluated, and when. */
export interface EvaluationPlan {
  /** Steps between two evaluations; without it the policy is evaluated before the first and after the last step only. */
  readonly every?: number | undefined;
  /** Attempts per task; 1 when not given. */
  readonly samples?: number | undefined;
  /** Of sampling; 0.6 when not given, 0 is greedy. */
  readonly temperature?: number | undefined;
  /** One more attempt per task that takes the most probable token each time, reported by itself. */
  readonly greedy?: boolean | undefined;
  /** The moving average of the weights is evaluated, too: as `eval_ema/…`. Only in training. */
  readonly average?: boolean | undefined;
  /** An attempt with at least this score has solved its task; 1 when not given. */
  readonly passScore?: number | undefined;
  /** In [0, 1]: more failed episodes than that make the evaluation an error; 0.5 when not given. */
  readonly maxFailureRate?: number | undefined;
}

/** How one task went. */
export interface TaskResult {
  readonly id: string;
  readonly source: string;
  /** Attempts, how many of them solved the task and how many failed. */
  readonly attempts: number;
  readonly solved: number;
  readonly failed: number;
  /** Mean reward of the attempts that did not fail; absent when all of them did. */
  readonly reward?: number;
}

export interface Evaluation {
  /** `eval/<source>/<name>`: pass1 … pass{samples}, failed_rate, and everything that episodeMetrics gives. */
  readonly metrics: Readonly<Record<string, number>>;
  readonly tasks: readonly TaskResult[];
  readonly episodes: readonly Episode[];
  /** Number of updates that the policy had had. */
  readonly version: number;
}

/** What an evaluation is held against. */
export interface EvaluationSubject {
  /** Updates of the weights that are to be evaluated: tokens of others are an error. */
  readonly version: number;
  /** First word of the metrics; `eval` when not given. */
  readonly prefix?: string | undefined;
  /** The evaluation before training; this one becomes it where there is none yet. */
  readonly baseline?: Baseline | undefined;
}

/** Whether an evaluation belongs after so many steps of a run. */
export function isDue({ every }: EvaluationPlan, step: number, steps: number): boolean {
  return step === 0 || step === steps || (every !== undefined && step % every === 0);
}

/**
 * Attempts every task and reports by task source. Environments and sampling get the same seeds in every evaluation of a
 * run, so that two evaluations differ by the policy alone. A failed attempt has not solved its task. Throws when a token
 * was sampled with other weights than those that are evaluated.
 */
export async function evaluate(
  tasks: readonly Task[],
  plan: EvaluationPlan,
  training: RolloutContext,
  { version, prefix = 'eval', baseline }: EvaluationSubject,
): Promise<Evaluation> {
  const { samples = 1, temperature = 0.6, greedy = false, passScore = 1, maxFailureRate = 0.5 } = plan;
  const executor = training.executor.single ?? training.executor;
  const context = { ...training, executor, params: { ...training.params, temperature } };
  const specs = tasks.map(task => {
    const group = `eval:${task.id}`;
    return { task, group, samples, greedy, environmentSeed: seedOf(context.seed, 'environment', group) };
  });
  const began = performance.now();
  const groups = await runGroups(specs, context);
  const seconds = (performance.now() - began) / 1000;
  const episodes = episodesOf(groups);
  checkFailureRate(episodes, maxFailureRate, 'eval');
  refuseStale(episodes, version);
  const summary = await summaryOf(groups, context);

  const results = groups.map(group => taskResult(group, passScore));
  const gains = baseline?.compare(scoresOf(results)) ?? {};
  const metrics: Record<string, number> = { 'timing/evaluation': seconds, [`${prefix}/policy_version`]: version };
  for (const source of new Set(results.map(result => result.source))) {
    const of = groups.filter(group => sourceOf(group.task) === source);
    const solved = results.filter(result => result.source === source).map(result => result.solved);
    const all = { ...sourceMetrics(of, solved, samples), ...greedyMetrics(of, passScore), ...gains[source] };
    for (const [name, value] of Object.entries(all)) metrics[`${prefix}/${source}/${name}`] = value;
  }
  for (const [name, value] of Object.entries(summary)) metrics[`${prefix}/${name}`] = value;
  return { metrics, tasks: results, episodes, version };
}

/** What the executor's service says of the attempts together. Attempts are worth something without it. */
async function summaryOf(groups: readonly EpisodeGroup[], { executor, limits, signal, log }: RolloutContext) {
  if (executor.summarize === undefined) return {};
  const attempts = groups.map(({ episodes }) => episodes);
  const timeoutMs = limits.callTimeoutMs;
  try {
    return await boundary('environment', 'summary', () => executor.summarize!(attempts, signal), { signal, timeoutMs });
  } catch (error) {
    signal.throwIfAborted();
    log(`the metrics that ${executor.name} gives for all episodes together are missing: ${messageOf(error)}`);
    return {};
  }
}

function sourceOf({ source = 'tasks' }: Task): string {
  return source;
}

function refuseStale(episodes: readonly Episode[], version: number): void {
  for (const { id, segments } of episodes) {
    const stale = segments.flatMap(segment => (segment.source === 'policy' ? [...segment.versions] : []));
    const other = stale.find(one => one !== version);
    if (other === undefined) continue;
    throw new Error(
      `episode ${id} was sampled with version ${other} of the weights, and version ${version} was evaluated`,
    );
  }
}

function taskResult({ task, episodes }: EpisodeGroup, passScore: number): TaskResult {
  const finished = episodes.filter(({ outcome }) => outcome.kind !== 'failed');
  return {
    id: task.id,
    source: sourceOf(task),
    attempts: episodes.length,
    solved: episodes.filter(episode => isSolved(episode, passScore)).length,
    failed: episodes.length - finished.length,
    ...(finished.length > 0 && { reward: mean(finished.map(episodeReward)) }),
  };
}

/** By source and task: the share of attempts that solved it. */
export function scoresOf(tasks: readonly TaskResult[]): Record<string, Record<string, number>> {
  const scores: Record<string, Record<string, number>> = {};
  for (const { source, id, solved, attempts } of tasks) {
    scores[source] ??= {};
    scores[source][id] = solved / attempts;
  }
  return scores;
}

/** Standard errors are of the mean over tasks, whose attempts depend on each other: Miller, arXiv 2411.00640, eq. 4. */
function sourceMetrics(
  groups: readonly EpisodeGroup[],
  solved: readonly number[],
  samples: number,
): Record<string, number> {
  const episodes = groups.flatMap(group => group.episodes);
  const rewards = groups.flatMap(group => {
    const finished = group.episodes.filter(({ outcome }) => outcome.kind !== 'failed');
    return finished.length > 0 ? [mean(finished.map(episodeReward))] : [];
  });
  const metrics: Record<string, number> = {
    ...episodeMetrics(episodes),
    failed_rate: mean(episodes.map(({ outcome }) => (outcome.kind === 'failed' ? 1 : 0))),
    reward_se: standardError(rewards),
    pass1_se: standardError(solved.map(count => count / samples)),
  };
  for (let k = 1; k < samples; k *= 2) metrics[`pass${k}`] = mean(solved.map(count => passAtK(samples, count, k)));
  metrics[`pass${samples}`] = mean(solved.map(count => passAtK(samples, count, samples)));
  return metrics;
}

function greedyMetrics(groups: readonly EpisodeGroup[], passScore: number): Record<string, number> {
  const attempts = groups.flatMap(({ greedy }) => greedy ?? []);
  if (attempts.length === 0) return {};
  return { greedy_pass1: mean(attempts.map(attempt => (isSolved(attempt, passScore) ? 1 : 0))) };
}

function isSolved({ outcome, score }: Episode, passScore: number): boolean {
  return outcome.kind !== 'failed' && outcome.kind !== 'rejected' && passes(score, passScore);
}

/** Scores are often sums of parts of 1, and ten tenths are not quite 1 in floating point. */
export function passes(score: number, passScore: number): boolean {
  return score >= passScore - 1e-9;
}

/**
 * The probability that at least one of k attempts solves a task of whose n attempts c did, without bias:
 * 1 − C(n − c, k) / C(n, k), as a product that does not overflow. Source: Chen et al., Evaluating Large Language
 * Models Trained on Code, eq. 1, https://arxiv.org/abs/2107.03374.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (!(k >= 1 && k <= n && c >= 0 && c <= n)) {
    throw new Error(`pass@k needs 1 ≤ k ≤ n and 0 ≤ c ≤ n, got n ${n}, c ${c}, k ${k}`);
  }
  let miss = 1;
  for (let i = 0; i < k; i++) miss *= Math.max(0, n - c - i) / (n - i);
  return 1 - miss;
}
