import type { Learner, Sampler } from '../engines/contracts.ts';
import { checkFailureRate, failureCounts, withoutFailures } from './failures.ts';
import { type EpisodeGroup, episodesOf, type GroupSpec, type RolloutContext, runGroups } from './groups.ts';
import { episodeMetrics, sampledTokens } from './metrics.ts';
import type { Cursor, TaskOrder } from './order.ts';
import type { Pipeline, RolloutBatch } from './pipeline.ts';
import { seedOf } from './seeds.ts';
import { checkedSelection, type GroupSelection, nextRound } from './selection.ts';

export interface SyncOptions {
  readonly sampler: Sampler;
  readonly order: TaskOrder;
  readonly context: RolloutContext;
  /** Groups per batch. */
  readonly groups: number;
  /** Episodes per group. */
  readonly samples: number;
  /** Also one greedy attempt at each task. */
  readonly greedy?: boolean | undefined;
  /** A group with fewer episodes that did not fail is not trained on. */
  readonly minimumGroup: number;
  /** In [0, 1]: the run stops when more of a batch's episodes fail. */
  readonly maxFailureRate: number;
  /** Replaces groups that teach nothing; all are taken when not given. */
  readonly selection?: GroupSelection | undefined;
}

/**
 * Sampling and learning take turns: a batch is sampled with the weights of the update before it. With a selection it is
 * sampled in rounds, each for the groups that are still missing; groups accepted beyond the batch open the next one.
 */
export class SyncPipeline implements Pipeline {
  readonly #options: SyncOptions;
  #waiting: EpisodeGroup[] = [];

  constructor(options: SyncOptions) {
    checkedSelection(options.selection);
    this.#options = options;
  }

  get cursor(): Cursor {
    return this.#options.order.cursor;
  }

  get waiting(): readonly EpisodeGroup[] {
    return this.#waiting;
  }

  seek(cursor: Cursor, waiting: readonly EpisodeGroup[] = []): void {
    this.#options.order.seek(cursor);
    this.#waiting = [...waiting];
  }

  publish(learner: Learner): Promise<void> {
    return this.#options.sampler.publish(learner);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RolloutBatch> {
    while (true) yield await this.#collect();
  }

  async #collect(): Promise<RolloutBatch> {
    const { sampler, context, groups: size, minimumGroup, maxFailureRate, selection } = this.#options;
    const began = performance.now();
    // Caches filled by an evaluation change the last bits of what comes after it, and a resumed run has none.
    await sampler.sleep();
    await sampler.wake();
    const sampled: EpisodeGroup[] = [];
    const accepted = [...this.#waiting];
    let [dropped, rejected] = [0, 0];
    const round = () => nextRound(selection, { groups: size, accepted: accepted.length, sampled: sampled.length });
    for (let count = round(); count > 0; count = round()) {
      const groups = await runGroups(this.#specs(count), context);
      sampled.push(...groups);
      checkFailureRate(episodesOf(sampled), maxFailureRate);
      const usable = withoutFailures(groups, minimumGroup);
      const taken = selection ? usable.filter(({ episodes }) => selection.accepts(episodes)) : usable;
      accepted.push(...taken);
      dropped += groups.length - usable.length;
      rejected += usable.length - taken.length;
    }
    const seconds = (performance.now() - began) / 1000;
    const groups = accepted.slice(0, size);
    this.#waiting = accepted.slice(size);
    if (selection && groups.length < size) {
      context.log(
        `only ${groups.length} of ${size} groups for this step: ${sampled.length} tasks were sampled, as many as rollout.max_oversampling allows, of which ${rejected} groups taught nothing and ${dropped} had too many failures`,
      );
    }

    const episodes = episodesOf(sampled);
    const metrics: Record<string, number> = {};
    const measured = episodeMetrics(sampled.flatMap(group => group.episodes));
    for (const [name, value] of Object.entries(measured)) metrics[`rollout/${name}`] = value;
    if (selection) {
      metrics['rollout/groups_sampled'] = sampled.length;
      metrics['rollout/groups_waiting'] = this.#waiting.length;
      // A step that only waiting groups feed samples nothing, and has no rate.
      if (sampled.length > 0) {
        metrics['rollout/dynamic_filtering_pass_rate'] = (sampled.length - dropped - rejected) / sampled.length;
      }
    }
    const greedy = sampled.flatMap(group => group.greedy ?? []);
    const { reward_mean: greedyReward } = episodeMetrics(greedy);
    if (greedyReward !== undefined) metrics['rollout/greedy_reward_mean'] = greedyReward;
    return {
      groups,
      episodes,
      metrics: {
        ...metrics,
        ...failureCounts(episodes),
        'rollout/groups_dropped': dropped,
        'timing/generation': seconds,
        'timing/tokens_per_second': episodes.reduce((sum, episode) => sum + sampledTokens(episode), 0) / seconds,
      },
    };
  }

  #specs(count: number): GroupSpec[] {
    const { order, context, samples, greedy } = this.#options;
    return Array.from({ length: count }, () => {
      const { task, group } = order.nextTask();
      return { task, group, samples, greedy, environmentSeed: seedOf(context.seed, 'environment', group) };
    });
  }
}
