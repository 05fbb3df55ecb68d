import { setMaxListeners } from 'node:events';
import type { Learner } from '../engines/contracts.ts';
import { Activity } from './activity.ts';
import { judge, sampledMetrics, tooFew } from './batch.ts';
import { checkFailureRate } from './failures.ts';
import { type EpisodeGroup, episodesOf, specOf, startGroups } from './groups.ts';
import { LengthBias } from './length-bias.ts';
import type { Cursor, Occurrence } from './order.ts';
import { type Backlog, NO_BACKLOG, type Pipeline, type RolloutBatch } from './pipeline.ts';
import { PromptUse } from './prompt-use.ts';
import { checkedSelection } from './selection.ts';
import { capacity, oldestVersion, PublishedVersions, stalenessMetrics, staleWeight } from './staleness.ts';
import type { PipelineOptions } from './sync.ts';
import { Turnstile } from './turnstile.ts';

/** What becomes of a group that is too stale to train on: it is left out, or its advantages count for less. */
export const STALE_RULES = ['drop', 'weigh'] as const;
export type StaleRule = (typeof STALE_RULES)[number];

/** What becomes of keys and values of answers under way when weights change: they stay, or are computed anew. */
export const PARTIAL_CACHES = ['keep', 'recompute'] as const;
export type PartialCache = (typeof PARTIAL_CACHES)[number];

/** How far sampling may run ahead of learning. */
export interface Overlap {
  /** Batches that may be under way or waiting; 1 when not given. */
  readonly queueSize?: number | undefined;
  /** Groups of a batch that is sampled, ≥ `groups`: a step then trains on those that are complete first. `groups` when not given. */
  readonly generateGroups?: number | undefined;
  /** Steps; `queueSize` when not given. */
  readonly maxStaleness?: number | undefined;
  /** `drop` when not given. */
  readonly whenStale?: StaleRule | undefined;
  /** Weights are swapped under answers that are under way; without it every group that was begun ends before. */
  readonly partial?: PartialCache | undefined;
}

export interface AsyncOptions extends PipelineOptions, Overlap {
  /** Milliseconds; `performance.now` when not given. */
  readonly now?: (() => number) | undefined;
}

/** A group from its beginning until it is trained on. */
interface Entry {
  /** Counts groups in the order in which they were begun. */
  readonly number: number;
  /** With its failed episodes. */
  readonly sampled: EpisodeGroup;
  /** What may be trained on; absent when too much failed or it was refused or is too stale. */
  readonly accepted?: EpisodeGroup | undefined;
  readonly why?: 'dropped' | 'rejected' | 'stale' | undefined;
  /** Version that sampled its oldest token. */
  readonly oldest: number;
}

/**
 * Sampling and learning overlap: groups are begun whenever there is room (staleness.ts has the rule), and a batch is
 * given as soon as enough are complete, those that were begun first in front. With no staleness allowed it samples and
 * learns in turns, as the sync pipeline does, with the same results.
 */
export class AsyncPipeline implements Pipeline {
  readonly #options: AsyncOptions & { readonly maxStaleness: number; readonly slots: number };
  readonly #running = new Map<number, Occurrence>();
  readonly #ends = new Set<Promise<void>>();
  /** Complete, and due in a batch. */
  #queue: Entry[] = [];
  /** Complete, and in no batch: reported with the next one. */
  #refused: Entry[] = [];
  /** Groups that have ended since the last batch. */
  #ended: EpisodeGroup[] = [];
  #published: PublishedVersions;
  #begun = 0;
  #batches = 0;
  /** Batches whose update has been published. */
  #version = 0;
  #swapping = false;
  #error: unknown;
  readonly #over = new AbortController();
  readonly #change = new Turnstile();
  readonly #activity: Activity;
  readonly #lengths: LengthBias;
  readonly #use: PromptUse;

  constructor(options: AsyncOptions) {
    checkedSelection(options.selection);
    const { slots, maxStaleness } = checkedOverlap(options, options.groups);
    this.#options = { ...options, slots, maxStaleness };
    this.#published = new PublishedVersions([options.sampler.version]);
    // One for each time that groups are begun, and all of them go.
    setMaxListeners(0, this.#over.signal);
    this.#activity = new Activity(options.now ?? (() => performance.now()));
    this.#lengths = new LengthBias((maxStaleness + 1) * options.groups);
    this.#use = new PromptUse(options.sampler);
  }

  get cursor(): Cursor {
    return this.#options.order.cursor;
  }

  get backlog(): Backlog {
    const started = [...this.#running.values()].map(({ group, task }) => ({ group, task: task.id }));
    return {
      // With what failed in them, and those that were refused: no step has reported them yet.
      waiting: sorted([...this.#queue, ...this.#refused]).map(({ sampled }) => sampled),
      started: [...started, ...this.#options.order.again],
      published: this.#published.versions,
    };
  }

  seek(cursor: Cursor, { waiting, started, published }: Backlog = NO_BACKLOG): void {
    this.#options.order.seek(cursor, started);
    for (const group of waiting) this.#file(this.#begun++, group);
    this.#published = new PublishedVersions(published);
  }

  async publish(learner: Learner): Promise<void> {
    const { sampler, partial, maxStaleness } = this.#options;
    this.#swapping = true;
    try {
      if (partial === undefined) await Promise.all(this.#ends);
      if (this.#running.size === 0) {
        await sampler.publish(learner);
      } else {
        await sampler.pause({ mode: partial === 'keep' ? 'keep' : 'abort' });
        try {
          await sampler.publish(learner);
        } finally {
          await sampler.resume();
        }
      }
    } finally {
      this.#swapping = false;
    }
    this.#published.add(learner.version);
    this.#version = this.#batches;
    // With nothing to overlap, whatever comes between two steps (an evaluation) has the sampler to itself, as in sync.
    if (maxStaleness > 0) this.#fill();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RolloutBatch> {
    const { signal } = this.#options.context;
    const stop = () => this.#over.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    try {
      for (;;) {
        signal.throwIfAborted();
        yield await this.#next();
      }
    } finally {
      signal.removeEventListener('abort', stop);
      // Groups under way stay in the backlog: a resumed run begins them anew.
      this.#over.abort(new Error('the pipeline has ended'));
      await Promise.all(this.#ends);
    }
  }

  /** Begins as many groups as there is room for. */
  #fill(): void {
    if (this.#swapping || this.#over.signal.aborted || this.#error !== undefined) return;
    const { order, groups: batchSize, maxStaleness, slots, context } = this.#options;
    const [waiting, running] = [this.#queue.length, this.#running.size];
    const accepted = this.#batches * batchSize + waiting;
    const room = capacity({ maxStaleness, version: this.#version, batchSize, accepted, waiting, running, slots });
    const tasks = Array.from({ length: Math.max(0, room) }, () => order.nextTask());
    const specs = tasks.map(task => specOf(task, this.#options));
    // Noted before they start: what starts together must not see a half-filled pipeline.
    const numbers = tasks.map(task => {
      this.#running.set(this.#begun, task);
      return this.#begun++;
    });
    this.#activity.running(this.#running.size);
    startGroups(specs, { ...context, signal: this.#over.signal }).forEach((group, i) => {
      const end = this.#follow(numbers[i]!, group).finally(() => this.#ends.delete(end));
      this.#ends.add(end);
    });
  }

  /** Never rejects: an error is the next batch's. */
  async #follow(number: number, group: Promise<EpisodeGroup>): Promise<void> {
    try {
      this.#take(number, await group);
      this.#fill();
    } catch (error) {
      this.#error ??= error;
    }
    this.#change.notify();
  }

  #take(number: number, sampled: EpisodeGroup): void {
    const { groups: size, maxFailureRate } = this.#options;
    this.#running.delete(number);
    this.#activity.running(this.#running.size);
    this.#lengths.ended(sampled);
    this.#ended.push(sampled);
    this.#file(number, sampled);
    if (this.#ended.length % size === 0) checkFailureRate(episodesOf(this.#ended), maxFailureRate);
  }

  /** Puts a group that has ended where it belongs: into the next batch, or to those that are only reported with it. */
  #file(number: number, sampled: EpisodeGroup): void {
    const { selection } = this.#options;
    const { taken, dropped } = judge([sampled], this.#options);
    const [accepted] = taken;
    const why = accepted ? undefined : dropped > 0 ? 'dropped' : 'rejected';
    // Without a selection a group that failed keeps its place, and its batch is smaller, as in the sync pipeline.
    const into = accepted || selection === undefined ? this.#queue : this.#refused;
    into.push({ number, sampled, accepted, why, oldest: oldestVersion(sampled) });
  }

  async #next(): Promise<RolloutBatch> {
    const { sampler, groups: size, maxFailureRate } = this.#options;
    this.#activity.waiting();
    if (this.#running.size === 0) {
      // As in the sync pipeline: what an evaluation left in caches changes the last bits of what comes after it.
      await sampler.sleep();
      await sampler.wake();
      // What an evaluation asked for is not the batch's.
      await this.#use.take();
    }
    this.#fill();
    while (this.#error === undefined && !this.#isReady()) {
      this.#fill();
      await this.#change.wait();
    }
    if (this.#error !== undefined) throw this.#error;
    checkFailureRate(episodesOf(this.#ended), maxFailureRate);
    const [batch, left] = split(sorted(this.#queue), size);
    const report = sorted([...batch, ...this.#refused]);
    [this.#queue, this.#refused, this.#ended] = [left, [], []];
    this.#batches += 1;
    const given = this.#report(batch, report);
    this.#fill();
    return { ...given, metrics: { ...given.metrics, ...(await this.#use.take()) } };
  }

  /** Whether a batch can be given. Entries that have become too stale leave the queue first. */
  #isReady(): boolean {
    const { groups: size, selection, maxStaleness, whenStale = 'drop' } = this.#options;
    for (const entry of this.#queue) {
      if (entry.accepted === undefined || entry.accepted.weight !== undefined) continue;
      const age = this.#published.age(entry.oldest);
      if (age <= maxStaleness) continue;
      const aged: Entry =
        whenStale === 'drop'
          ? { ...entry, accepted: undefined, why: 'stale' }
          : { ...entry, accepted: { ...entry.accepted, weight: staleWeight(age, maxStaleness) } };
      this.#queue = this.#queue.filter(other => other !== entry);
      (whenStale === 'drop' ? this.#refused : this.#queue).push(aged);
    }
    if (this.#queue.length >= size) return true;
    const most = selection && (selection.maxOversampling ?? 8) * size;
    return most !== undefined && this.#ended.length >= Math.floor(most);
  }

  #report(batch: readonly Entry[], reported: readonly Entry[]): RolloutBatch {
    const { context, groups: size, selection } = this.#options;
    const groups = batch.flatMap(({ accepted }) => accepted ?? []);
    const sampled = reported.map(entry => entry.sampled);
    const count = (reason: Entry['why']) => reported.filter(({ why }) => why === reason).length;
    const { seconds, ...idle } = this.#activity.given();
    const waiting = selection && this.#queue.length;
    const report = { sampled, dropped: count('dropped'), rejected: count('rejected'), waiting, seconds };
    if (selection && batch.length < size) context.log(tooFew(groups.length, size, report));
    const last = Math.max(...batch.map(({ number }) => number));
    const overlap = {
      queue_depth: this.#queue.length,
      groups_in_flight: this.#running.size,
      groups_overtaken: [...this.#running.keys()].filter(number => number < last).length,
      stale_dropped: count('stale'),
      stale_weighted: groups.filter(({ weight }) => weight !== undefined).length,
      ...stalenessMetrics(
        groups.flatMap(({ episodes }) => episodes),
        this.#published,
      ),
      ...this.#lengths.of(batch.map(entry => entry.sampled)),
    };
    const metrics: Record<string, number> = { ...sampledMetrics(report), ...idle };
    for (const [name, value] of Object.entries(overlap)) metrics[`rollout/${name}`] = value;
    return { groups, episodes: episodesOf(sampled), metrics };
  }
}

/**
 * The bounds of an overlap, with their defaults.
 * @throws Error for bounds that cannot work together, with the reason
 */
export function checkedOverlap(overlap: Overlap, groups: number): { slots: number; maxStaleness: number } {
  const { queueSize = 1, generateGroups = groups, maxStaleness = queueSize } = overlap;
  if (!(Number.isInteger(queueSize) && queueSize >= 1)) {
    throw new Error(`train.async_queue_size must be a whole number ≥ 1, got ${queueSize}`);
  }
  if (!(Number.isInteger(maxStaleness) && maxStaleness >= 0)) {
    throw new Error(`rollout.max_staleness must be a whole number ≥ 0, got ${maxStaleness}`);
  }
  if (!(Number.isInteger(generateGroups) && generateGroups >= groups)) {
    throw new Error(
      `rollout.vllm_generate_batch_size must be a whole number ≥ rollout.batch_size (${groups}), or no batch is ever full; got ${generateGroups}`,
    );
  }
  const slots = queueSize * generateGroups;
  const most = (maxStaleness + 1) * groups;
  if (slots > most) {
    throw new Error(
      `a queue of ${slots} groups (train.async_queue_size ${queueSize} × ${generateGroups}) is never full: rollout.max_staleness ${maxStaleness} lets ${most} run ahead; raise it to ${Math.ceil(slots / groups) - 1} or make the queue smaller`,
    );
  }
  return { slots, maxStaleness };
}

function sorted(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((a, b) => a.number - b.number);
}

function split<T>(values: readonly T[], at: number): [T[], T[]] {
  return [values.slice(0, at), values.slice(at)];
}
