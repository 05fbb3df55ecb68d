import type { Task } from '../episode/task.ts';
import { seedOf, shuffledIndices } from './seeds.ts';

/** A task and which of its occurrences in the run this is. */
export interface Occurrence {
  readonly task: Task;
  /** Pass over the data, from 0. */
  readonly epoch: number;
  /** Unique in the run. */
  readonly group: string;
}

/** Where in the data a run stands: all that is needed to continue in the same order. */
export interface Cursor {
  readonly epoch: number;
  readonly position: number;
}

/** The order in which a run takes its tasks: each pass over the data is a shuffle of its own. */
export class TaskOrder {
  readonly #tasks: readonly Task[];
  readonly #seed: number;
  #cursor: Cursor = { epoch: 0, position: 0 };
  #shuffle: { readonly epoch: number; readonly indices: Int32Array } | undefined;

  constructor(tasks: readonly Task[], seed: number) {
    if (tasks.length === 0) throw new Error('a run needs at least one task');
    this.#tasks = tasks;
    this.#seed = seed;
  }

  next(): Occurrence {
    const { epoch, position } = this.#cursor;
    if (this.#shuffle?.epoch !== epoch) {
      this.#shuffle = { epoch, indices: shuffledIndices(this.#tasks.length, seedOf(this.#seed, 'order', epoch)) };
    }
    const task = this.#tasks[this.#shuffle.indices[position]!]!;
    const last = position + 1 === this.#tasks.length;
    this.#cursor = last ? { epoch: epoch + 1, position: 0 } : { epoch, position: position + 1 };
    return { task, epoch, group: `${task.id}@${epoch}` };
  }

  get cursor(): Cursor {
    return this.#cursor;
  }

  /** Continues at `cursor`. */
  seek(cursor: Cursor): void {
    if (cursor.position >= this.#tasks.length) {
      throw new Error(
        `the checkpoint stands at task ${cursor.position} of a pass, but there are ${this.#tasks.length} tasks; resume with the dataset the run was started with`,
      );
    }
    this.#cursor = cursor;
  }
}
