import { join } from 'node:path';
import type { KlController } from '../algorithms/kl.ts';
import { messageOf } from '../episode/failure.ts';
import type { Pipeline } from '../rollout/pipeline.ts';
import { type Best, type BestOptions, betterOf } from './best.ts';
import { latestCheckpoint, loadCheckpoint, newestCheckpoint, saveCheckpoint, type Trained } from './checkpoint.ts';
import type { Baseline } from './gain.ts';

export interface CheckpointOptions {
  readonly directory: string;
  /** Steps between two checkpoints; without it one is written only when the run is stopped or has a new best. */
  readonly every?: number | undefined;
  /** Checkpoints kept beside the best, which always is; 3 when not given. */
  readonly keep?: number | undefined;
  /** Bytes of all checkpoints together; the newest and the best are kept even if they need more. */
  readonly maxBytes?: number | undefined;
  /** Continue from this checkpoint, or with true from the newest whole one in the directory, if there is one. */
  readonly resume?: boolean | string | undefined;
  /** What makes an evaluation the best, so that a checkpoint of it is written and kept; false for none. */
  readonly best?: BestOptions | false | undefined;
  /** Each checkpoint also holds the weights as a model. */
  readonly model?: boolean | undefined;
  /** Options of the run, to be kept in each checkpoint. */
  readonly config?: Readonly<Record<string, unknown>> | undefined;
}

/** How far a run has come. */
export interface Progress {
  /** Steps done. */
  readonly step: number;
  /** Optimizer updates done. */
  readonly updates: number;
}

/** What a checkpoint is taken of. */
export interface Checkpointed extends Trained {
  /** Where in the data the run stands. */
  readonly data: Pick<Pipeline, 'cursor' | 'seek'> & Partial<Pick<Pipeline, 'backlog'>>;
  /** Digest of the rows. */
  readonly rows?: string | undefined;
  readonly kl?: KlController | undefined;
  /** What evaluations are compared with. */
  readonly baseline?: Baseline | undefined;
  readonly seed: number;
  /** How far trackers have come. */
  readonly trackers?: (() => Promise<Record<string, unknown>>) | undefined;
  readonly log: (message: string) => void;
}

/** Writes the checkpoints of one run, and continues from them. */
export class Checkpointer {
  readonly #options: CheckpointOptions;
  readonly #of: Checkpointed;
  #saved: number | undefined;
  #best: Best | undefined;

  constructor(options: CheckpointOptions, of: Checkpointed) {
    const { every = 1, keep = 3, maxBytes = 1 } = options;
    for (const [name, value] of Object.entries({ 'ckpt.save_steps': every, 'ckpt.max_num': keep })) {
      if (!(Number.isInteger(value) && value >= 1)) throw new Error(`${name} must be a whole number ≥ 1, got ${value}`);
    }
    if (!(maxBytes > 0)) throw new Error(`ckpt.max_mem must be above 0, got ${maxBytes} bytes`);
    this.#options = options;
    this.#of = of;
  }

  /** The best evaluation so far. */
  get best(): Best | undefined {
    return this.#best;
  }

  /** Brings everything to the checkpoint that the options ask for, if there is one. */
  async restore(): Promise<Progress> {
    const { directory, resume = false } = this.#options;
    const { data, kl, seed, rows, baseline, log } = this.#of;
    const from = resume === true ? await latestCheckpoint(directory, log) : resume || undefined;
    if (from === undefined) return { step: 0, updates: 0 };
    const state = await loadCheckpoint(from, this.#of, { seed, data: rows });
    data.seek(state.cursor, state.backlog);
    if (kl !== undefined && state.beta !== undefined) kl.restore({ value: state.beta });
    if (state.baseline !== undefined) baseline?.restore(state.baseline);
    this.#best = state.best;
    this.#saved = state.step;
    return { step: state.step, updates: state.updates };
  }

  /** Takes note of a step that is done: saves when so many steps have passed, or when its evaluation is the best. */
  async after(progress: Progress, evaluation?: Readonly<Record<string, number>>): Promise<void> {
    const { every, best = {} } = this.#options;
    const before = this.#best;
    if (evaluation !== undefined && best !== false) {
      this.#best = betterOf(before, evaluation, progress.step, best);
    }
    const isDue = every !== undefined && progress.step % every === 0;
    if (progress.step > 0 && (isDue || this.#best !== before)) await this.save(progress);
  }

  /** Saves unless this step is saved already. */
  async save({ step, updates }: Progress): Promise<void> {
    if (this.#saved === step) return;
    const { directory, keep = 3, maxBytes, model, config } = this.#options;
    const { data, rows, kl, baseline, seed, trackers } = this.#of;
    const state = {
      step,
      updates,
      seed,
      cursor: data.cursor,
      data: rows,
      beta: kl?.value,
      best: this.#best,
      baseline: baseline?.state,
      trackers: await trackers?.(),
      config,
    };
    await saveCheckpoint(directory, state, this.#of, { maxCount: keep, maxBytes, backlog: data.backlog, model });
    this.#saved = step;
  }

  /** Saves for a run that stops with an error; says where, or why not. Never rejects. */
  async saveBeforeEnd(progress: Progress): Promise<string> {
    try {
      await this.save(progress);
      return `The checkpoint to continue from is ${newestCheckpoint(this.#options.directory)}`;
    } catch (error) {
      return `A checkpoint could not be written: ${messageOf(error)}`;
    }
  }

  /** Writes the weights as a model, for a run that cannot go on; says where they are, or why they are not. */
  async rescue(): Promise<string> {
    const directory = join(this.#options.directory, 'last-good');
    const newest = newestCheckpoint(this.#options.directory);
    const checkpoint = newest === undefined ? '' : `; the newest checkpoint is ${newest}`;
    try {
      await this.#of.learner.export(directory);
      return `The last good weights are in ${directory}${checkpoint}`;
    } catch (error) {
      return `The last good weights could not be written to ${directory}: ${messageOf(error)}${checkpoint}`;
    }
  }
}
