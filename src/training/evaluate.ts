import type { Episode } from '../episode/episode.ts';
import type { Task } from '../episode/task.ts';
import { checkFailureRate } from '../rollout/failures.ts';
import { type EpisodeGroup, type RolloutContext, runGroups } from '../rollout/groups.ts';
import { episodeMetrics, mean } from '../rollout/metrics.ts';
import { seedOf } from '../rollout/seeds.ts';

export interface EvaluationOptions {
  readonly tasks: readonly Task[];
  /** Attempts per task, ≥ 1. */
  readonly samples: number;
  /** An attempt whose score reaches it has solved its task. */
  readonly passScore: number;
  /** In [0, 1]: more failed episodes than that make the evaluation an error. */
  readonly maxFailureRate: number;
}

export interface Evaluation {
  /** `eval/<source>/<name>`: pass1 … pass{samples}, and everything that episodeMetrics gives. */
  readonly metrics: Readonly<Record<string, number>>;
  readonly episodes: readonly Episode[];
}

/**
 * Attempts every task `samples` times and reports by task source. Environments and sampling get the same seeds in every
 * evaluation of a run, so that two evaluations differ by the policy alone. A failed attempt has not solved its task.
 */
export async function evaluate(options: EvaluationOptions, context: RolloutContext): Promise<Evaluation> {
  const specs = options.tasks.map(task => {
    const group = `eval:${task.id}`;
    const environmentSeed = seedOf(context.seed, 'environment', group);
    return { task, group, samples: options.samples, environmentSeed };
  });
  const groups = await runGroups(specs, context);
  const episodes = groups.flatMap(group => group.episodes);
  checkFailureRate(episodes, options.maxFailureRate);

  const bySource = new Map<string, EpisodeGroup[]>();
  for (const group of groups) {
    const source = group.task.source ?? 'tasks';
    const known = bySource.get(source);
    if (known === undefined) bySource.set(source, [group]);
    else known.push(group);
  }
  const metrics: Record<string, number> = {};
  for (const [source, of] of bySource) {
    for (const [name, value] of Object.entries(sourceMetrics(of, options))) metrics[`eval/${source}/${name}`] = value;
  }
  return { metrics, episodes };
}

function sourceMetrics(groups: readonly EpisodeGroup[], options: EvaluationOptions): Record<string, number> {
  const { samples, passScore } = options;
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
