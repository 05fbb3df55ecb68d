import type { Episode } from '../episode/episode.ts';
import type { Task } from '../episode/task.ts';
import { checkFailureRate } from '../rollout/failures.ts';
import { type EpisodeGroup, type RolloutContext, runGroups } from '../rollout/groups.ts';
import { episodeMetrics, mean } from '../rollout/metrics.ts';
import { seedOf } from '../rollout/seeds.ts';

/** How a policy is evaluated, and when. */
export interface EvaluationPlan {
  /** Steps between two evaluations; without it the policy is evaluated before the first and after the last step only. */
  readonly every?: number | undefined;
  /** Attempts per task; 1 when not given. */
  readonly samples?: number | undefined;
  /** Of sampling; 0.6 when not given, 0 is greedy. */
  readonly temperature?: number | undefined;
  /** An attempt with at least this score has solved its task; 1 when not given. */
  readonly passScore?: number | undefined;
  /** In [0, 1]: more failed episodes than that make the evaluation an error; 0.5 when not given. */
  readonly maxFailureRate?: number | undefined;
}

export interface Evaluation {
  /** `eval/<source>/<name>`: pass1 … pass{samples}, failed_rate, and everything that episodeMetrics gives. */
  readonly metrics: Readonly<Record<string, number>>;
  readonly episodes: readonly Episode[];
}

/** Whether an evaluation belongs after so many steps of a run. */
export function isDue({ every }: EvaluationPlan, step: number, steps: number): boolean {
  return step === 0 || step === steps || (every !== undefined && step % every === 0);
}

/**
 * Attempts every task and reports by task source. Environments and sampling get the same seeds in every evaluation of a
 * run, so that two evaluations differ by the policy alone. A failed attempt has not solved its task.
 */
export async function evaluate(
  tasks: readonly Task[],
  plan: EvaluationPlan,
  training: RolloutContext,
): Promise<Evaluation> {
  const { samples = 1, temperature = 0.6, passScore = 1, maxFailureRate = 0.5 } = plan;
  const context = { ...training, params: { ...training.params, temperature } };
  const specs = tasks.map(task => {
    const group = `eval:${task.id}`;
    return { task, group, samples, environmentSeed: seedOf(context.seed, 'environment', group) };
  });
  const began = performance.now();
  const groups = await runGroups(specs, context);
  const seconds = (performance.now() - began) / 1000;
  const episodes = groups.flatMap(group => group.episodes);
  checkFailureRate(episodes, maxFailureRate, 'eval');

  const bySource = new Map<string, EpisodeGroup[]>();
  for (const group of groups) {
    const source = group.task.source ?? 'tasks';
    const known = bySource.get(source);
    if (known === undefined) bySource.set(source, [group]);
    else known.push(group);
  }
  const metrics: Record<string, number> = { 'timing/evaluation': seconds };
  for (const [source, of] of bySource) {
    for (const [name, value] of Object.entries(sourceMetrics(of, samples, passScore))) {
      metrics[`eval/${source}/${name}`] = value;
    }
  }
  return { metrics, episodes };
}

function sourceMetrics(groups: readonly EpisodeGroup[], samples: number, passScore: number): Record<string, number> {
  const episodes = groups.flatMap(group => group.episodes);
  const solved = groups.map(group => group.episodes.filter(episode => isSolved(episode, passScore)).length);
  const metrics: Record<string, number> = {
    ...episodeMetrics(episodes),
    failed_rate: mean(episodes.map(({ outcome }) => (outcome.kind === 'failed' ? 1 : 0))),
  };
  for (let k = 1; k < samples; k *= 2) metrics[`pass${k}`] = mean(solved.map(count => passAtK(samples, count, k)));
  metrics[`pass${samples}`] = mean(solved.map(count => passAtK(samples, count, samples)));
  return metrics;
}

function isSolved({ outcome, score }: Episode, passScore: number): boolean {
  return outcome.kind !== 'failed' && score >= passScore;
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
