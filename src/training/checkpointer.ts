import { join } from 'node:path';
import type { KlController } from '../algorithms/kl.ts';
import { messageOf } from '../episode/failure.ts';
import type { Pipeline } from '../rollout/pipeline.ts';
import { latestCheckpoint, loadCheckpoint, saveCheckpoint, type Trained } from './checkpoint.ts';

export interface CheckpointOptions {
  readonly directory: string;
  /** Steps between two checkpoints; without it one is written only when the run is stopped. */
  readonly every?: number | undefined;
  /** Checkpoints kept; 3 when not given. */
  readonly keep?: number | undefined;
  /** Continue from the newest checkpoint in the directory, if there is one. */
  readonly resume?: boolean | undefined;
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
  readonly kl?: KlController | undefined;
  readonly seed: number;
}

/** Writes the checkpoints of one run, and continues from them. */
export class Checkpointer {
  readonly #options: CheckpointOptions;
  readonly #of: Checkpointed;
  #saved: number | undefined;

  constructor(options: CheckpointOptions, of: Checkpointed) {
    this.#options = options;
    this.#of = of;
  }

  /** Brings everything to the newest checkpoint when the options ask for it and there is one. */
  async restore(): Promise<Progress> {
    const { directory, resume = false } = this.#options;
    const newest = resume ? latestCheckpoint(directory) : undefined;
    if (newest === undefined) return { step: 0, updates: 0 };
    const { data, kl, seed } = this.#of;
    const { step, updates, cursor, beta, backlog } = await loadCheckpoint(newest, this.#of, seed);
    data.seek(cursor, backlog);
    if (kl !== undefined && beta !== undefined) kl.restore({ value: beta });
    this.#saved = step;
    return { step, updates };
  }

  /** Saves when so many steps have passed. */
  async saveIfDue(progress: Progress): Promise<void> {
    const { every } = this.#options;
    if (every !== undefined && progress.step > 0 && progress.step % every === 0) await this.save(progress);
  }

  /** Saves unless this step is saved already. */
  async save({ step, updates }: Progress): Promise<void> {
    if (this.#saved === step) return;
    const { directory, keep = 3 } = this.#options;
    const { data, kl, seed } = this.#of;
    const state = { step, updates, seed, cursor: data.cursor, ...(kl ? { beta: kl.value } : {}) };
    await saveCheckpoint(directory, state, this.#of, { keep, backlog: data.backlog });
    this.#saved = step;
  }

  /** Writes the weights as a model, for a run that cannot go on; says where they are, or why they are not. */
  async rescue(): Promise<string> {
    const directory = join(this.#options.directory, 'last-good');
    const newest = latestCheckpoint(this.#options.directory);
    try {
      await this.#of.learner.export(directory);
      const checkpoint = newest === undefined ? '' : `; the newest checkpoint is ${newest}`;
      return `The last good weights are in ${directory}${checkpoint}`;
    } catch (error) {
      return `The last good weights could not be written to ${directory}: ${messageOf(error)}`;
    }
  }
}
