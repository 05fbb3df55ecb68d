import type { Task } from '../episode/task.ts';
import { seedOf, shuffledIndices } from './seeds.ts';

/** Where in the data a run stands: all that is needed to continue in the same order. */
export interface Cursor {
  /** Passes completed. */
  readonly epoch: number;
  /** Rows taken in this pass. */
  readonly position: number;
}

/** The order in which a run takes its rows: without end, each pass over the data a shuffle of its own. */
export class DataOrder {
  readonly #rows: number;
  readonly #seed: number;
  #cursor: Cursor = { epoch: 0, position: 0 };
  #shuffle: { readonly epoch: number; readonly indices: Int32Array } | undefined;

  constructor(rows: number, seed: number) {
    if (rows === 0) throw new Error('a run needs at least one row of data');
    this.#rows = rows;
    this.#seed = seed;
  }

  /** The next row and the pass it belongs to. */
  next(): { readonly row: number; readonly epoch: number } {
    const { epoch, position } = this.#cursor;
    if (this.#shuffle?.epoch !== epoch) {
      this.#shuffle = { epoch, indices: shuffledIndices(this.#rows, seedOf(this.#seed, 'order', epoch)) };
    }
    const last = position + 1 === this.#rows;
    this.#cursor = last ? { epoch: epoch + 1, position: 0 } : { epoch, position: position + 1 };
    return { row: this.#shuffle.indices[position]!, epoch };
  }

  get cursor(): Cursor {
    return this.#cursor;
  }

  /** Continues at `cursor`. */
  seek(cursor: Cursor): void {
    if (cursor.position >= this.#rows) {
      throw new Error(
        `the checkpoint stands at row ${cursor.position} of a pass, but there are ${this.#rows} rows; resume with the dataset the run was started with`,
      );
    }
    this.#cursor = cursor;
  }
}

/** A task and which of its occurrences in the run this is. */
export interface Occurrence {
  readonly task: Task;
  /** Unique in the run. */
  readonly group: string;
}

/** An occurrence whose group was begun and not completed. */
export interface Started {
  /** Under the same name a group gets the same random streams again. */
  readonly group: string;
  /** Id of its task. */
  readonly task: string;
}

/** Tasks in the order of a run. */
export class TaskOrder extends DataOrder {
  readonly #tasks: readonly Task[];
  #again: Occurrence[] = [];

  constructor(tasks: readonly Task[], seed: number) {
    super(tasks.length, seed);
    this.#tasks = tasks;
  }

  /** Occurrences that come again before the rows behind the cursor. */
  get again(): readonly Started[] {
    return this.#again.map(({ group, task }) => ({ group, task: task.id }));
  }

  /** Continues at `cursor`; what had been begun comes first. */
  override seek(cursor: Cursor, started: readonly Started[] = []): void {
    super.seek(cursor);
    this.#again = started.map(({ group, task: id }) => {
      const task = this.#tasks.find(each => each.id === id);
      if (task !== undefined) return { task, group };
      throw new Error(
        `the checkpoint was sampling the task ${JSON.stringify(id)}, which is not among the tasks; resume with the dataset the run was started with`,
      );
    });
  }

  nextTask(): Occurrence {
    const again = this.#again.shift();
    if (again !== undefined) return again;
    const { row, epoch } = this.next();
    const task = this.#tasks[row]!;
    return { task, group: `${task.id}@${epoch}` };
  }
}
