import type { Learner, Sampler } from '../engines/contracts.ts';
import { judge, type Standard, sampledMetrics, tooFew } from './batch.ts';
import { checkFailureRate } from './failures.ts';
import { type EpisodeGroup, episodesOf, type RolloutContext, runGroups, specOf } from './groups.ts';
import type { Cursor, TaskOrder } from './order.ts';
import { type Backlog, NO_BACKLOG, type Pipeline, type RolloutBatch } from './pipeline.ts';
import { PromptUse } from './prompt-use.ts';
import { checkedSelection, nextRound } from './selection.ts';

/** What every pipeline is told. */
export interface PipelineOptions extends Standard {
  readonly sampler: Sampler;
  readonly order: TaskOrder;
  readonly context: RolloutContext;
  /** Groups per batch. */
  readonly groups: number;
  /** Episodes per group. */
  readonly samples: number;
  /** Also one greedy attempt at each task. */
  readonly greedy?: boolean | undefined;
  /** In [0, 1]: the run stops when more of a batch's episodes fail. */
  readonly maxFailureRate: number;
}

export interface SyncOptions extends PipelineOptions {
  /** Frees the sampler's caches from the end of sampling until new weights are published. */
  readonly samplerSleeps?: boolean | undefined;
  /** A learner whose optimizer state is put away while episodes are sampled. */
  readonly sleepingLearner?: Learner | undefined;
}

/**
 * Sampling and learning take turns: a batch is sampled with the weights of the update before it. With a selection it is
 * sampled in rounds, each for the groups that are still missing; groups accepted beyond the batch open the next one.
 */
export class SyncPipeline implements Pipeline {
  readonly #options: SyncOptions;
  /** Where in the data the last batch ended: one that could not be finished has taken tasks, too. */
  #place: { readonly cursor: Cursor; readonly started: Backlog['started'] };
  #waiting: EpisodeGroup[] = [];

  constructor(options: SyncOptions) {
    checkedSelection(options.selection);
    this.#options = options;
    this.#place = placeOf(options.order);
  }

  get cursor(): Cursor {
    return this.#place.cursor;
  }

  get backlog(): Backlog {
    return { waiting: this.#waiting, started: this.#place.started, published: [] };
  }

  seek(cursor: Cursor, { waiting, started }: Backlog = NO_BACKLOG): void {
    this.#options.order.seek(cursor, started);
    this.#place = placeOf(this.#options.order);
    this.#waiting = [...waiting];
  }

  async publish(learner: Learner): Promise<void> {
    const { sampler } = this.#options;
    await sampler.wake();
    await sampler.publish(learner);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RolloutBatch> {
    while (true) yield await this.#collect();
  }

  async #collect(): Promise<RolloutBatch> {
    const { sampler, context, groups: size, maxFailureRate, selection, samplerSleeps, sleepingLearner } = this.#options;
    const began = performance.now();
    const offloaded = await sleepingLearner?.offload?.();
    // Caches filled by an evaluation change the last bits of what comes after it, and a resumed run has none.
    await sampler.sleep();
    await sampler.wake();
    const use = new PromptUse(sampler);
    await use.take();
    const sampled: EpisodeGroup[] = [];
    const accepted = [...this.#waiting];
    let [dropped, rejected] = [0, 0];
    const round = () => nextRound(selection, { groups: size, accepted: accepted.length, sampled: sampled.length });
    for (let count = round(); count > 0; count = round()) {
      const groups = await runGroups(
        Array.from({ length: count }, () => specOf(this.#options.order.nextTask(), this.#options)),
        context,
      );
      sampled.push(...groups);
      checkFailureRate(episodesOf(sampled), maxFailureRate);
      const judged = judge(groups, this.#options);
      accepted.push(...judged.taken);
      dropped += judged.dropped;
      rejected += judged.rejected;
    }
    if (samplerSleeps) await sampler.sleep();
    const seconds = (performance.now() - began) / 1000;
    const groups = accepted.slice(0, size);
    this.#waiting = accepted.slice(size);
    this.#place = placeOf(this.#options.order);
    const waiting = selection && this.#waiting.length;
    const report = { sampled, dropped, rejected, waiting, seconds };
    if (selection && groups.length < size) context.log(tooFew(groups.length, size, report));
    const metrics = { ...sampledMetrics(report), ...(await use.take()) };
    if (offloaded !== undefined) metrics['rollout/offloaded_bytes'] = offloaded;
    return { groups, episodes: episodesOf(sampled), metrics };
  }
}

function placeOf({ cursor, again }: TaskOrder): { readonly cursor: Cursor; readonly started: Backlog['started'] } {
  return { cursor, started: again };
}
