import type { Learner, Sampler } from '../engines/contracts.ts';
import { checkFailureRate, failureCounts, withoutFailures } from './failures.ts';
import { type RolloutContext, runGroups } from './groups.ts';
import { episodeMetrics, sampledTokens } from './metrics.ts';
import type { Cursor, TaskOrder } from './order.ts';
import type { Pipeline, RolloutBatch } from './pipeline.ts';
import { seedOf } from './seeds.ts';

export interface SyncOptions {
  readonly sampler: Sampler;
  readonly order: TaskOrder;
  readonly context: RolloutContext;
  /** Groups per batch. */
  readonly groups: number;
  /** Episodes per group. */
  readonly samples: number;
  /** A group with fewer episodes that did not fail is not trained on. */
  readonly minimumGroup: number;
  /** In [0, 1]: the run stops when more of a batch's episodes fail. */
  readonly maxFailureRate: number;
}

/** Sampling and learning take turns: a batch is sampled with the weights of the update before it. */
export class SyncPipeline implements Pipeline {
  readonly #options: SyncOptions;

  constructor(options: SyncOptions) {
    this.#options = options;
  }

  get cursor(): Cursor {
    return this.#options.order.cursor;
  }

  seek(cursor: Cursor): void {
    this.#options.order.seek(cursor);
  }

  publish(learner: Learner): Promise<void> {
    return this.#options.sampler.publish(learner);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RolloutBatch> {
    while (true) yield await this.#collect();
  }

  async #collect(): Promise<RolloutBatch> {
    const { sampler, order, context, groups: count, samples, minimumGroup, maxFailureRate } = this.#options;
    const began = performance.now();
    // Caches filled by an evaluation change the last bits of what comes after it, and a resumed run has none.
    await sampler.sleep();
    await sampler.wake();
    const specs = Array.from({ length: count }, () => {
      const { task, group } = order.nextTask();
      return { task, group, samples, environmentSeed: seedOf(context.seed, 'environment', group) };
    });
    const sampled = await runGroups(specs, context);
    const seconds = (performance.now() - began) / 1000;

    const episodes = sampled.flatMap(group => group.episodes);
    checkFailureRate(episodes, maxFailureRate);
    const groups = withoutFailures(sampled, minimumGroup);
    const metrics: Record<string, number> = {};
    for (const [name, value] of Object.entries(episodeMetrics(episodes))) metrics[`rollout/${name}`] = value;
    return {
      groups,
      episodes,
      metrics: {
        ...metrics,
        ...failureCounts(episodes),
        'rollout/groups_dropped': sampled.length - groups.length,
        'timing/generation': seconds,
        'timing/tokens_per_second': episodes.reduce((sum, episode) => sum + sampledTokens(episode), 0) / seconds,
      },
    };
  }
}
