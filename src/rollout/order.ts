import { drawsOfPass } from '../data/mixture.ts';
import type { Rows } from '../data/rows.ts';
import type { Task } from '../episode/task.ts';
import { seedOf, shuffledIndices } from './seeds.ts';

/** Where in the data a run stands: all that is needed to continue in the same order. */
export interface Cursor {
  /** Passes completed. */
  readonly epoch: number;
  /** Rows taken in this pass. */
  readonly position: number;
}

/**
 * The order in which a run takes its rows: without end, each pass over the data a shuffle of its own. Of a mixture a
 * pass is as many draws, shuffled, each part with exactly its share of them; the rows of a part come in shuffles of
 * their own, whichever pass that falls into. Row and cursor say it all: the order is a function of them and the seed.
 */
export class DataOrder {
  readonly #rows: number;
  readonly #seed: number;
  readonly #parts: readonly PartOrder[];
  #cursor: Cursor = { epoch: 0, position: 0 };
  #draws: { readonly epoch: number; readonly parts: Int32Array; readonly before: Int32Array } | undefined;

  constructor({ length, mixture }: Pick<Rows<unknown>, 'length' | 'mixture'>, seed: number) {
    if (length === 0) throw new Error('a run needs at least one row of data');
    this.#rows = length;
    this.#seed = seed;
    const draws = mixture && drawsOfPass(mixture);
    let start = 0;
    this.#parts = (mixture ?? [{ rows: length }]).map(({ rows }, k) => {
      const part = { start, rows, draws: draws?.[k] ?? length, stream: draws ? [k] : [], shuffle: undefined };
      start += rows;
      return part;
    });
  }

  /** The next row and which pass over its part it belongs to. */
  next(): { readonly row: number; readonly epoch: number } {
    const { epoch, position } = this.#cursor;
    const last = position + 1 === this.#rows;
    this.#cursor = last ? { epoch: epoch + 1, position: 0 } : { epoch, position: position + 1 };
    if (this.#parts.length === 1) return this.#rowOf(this.#parts[0]!, epoch * this.#rows + position);
    const { parts, before } = this.#drawsOf(epoch);
    const part = this.#parts[parts[position]!]!;
    return this.#rowOf(part, epoch * part.draws + before[position]!);
  }

  /** The row of a part that its `count`th draw gives, counted from 0. */
  #rowOf(part: PartOrder, count: number): { readonly row: number; readonly epoch: number } {
    const epoch = Math.floor(count / part.rows);
    if (part.shuffle?.epoch !== epoch) {
      const seed = seedOf(this.#seed, 'order', ...part.stream, epoch);
      part.shuffle = { epoch, indices: shuffledIndices(part.rows, seed) };
    }
    return { row: part.start + part.shuffle.indices[count % part.rows]!, epoch };
  }

  /** Of each draw of a pass, the part and how many draws of that part came before it. */
  #drawsOf(epoch: number) {
    if (this.#draws?.epoch === epoch) return this.#draws;
    const ends: number[] = [];
    for (const { draws } of this.#parts) ends.push((ends.at(-1) ?? 0) + draws);
    const shuffle = shuffledIndices(this.#rows, seedOf(this.#seed, 'mixture', epoch));
    const parts = shuffle.map(place => ends.findIndex(end => place < end));
    const counts = this.#parts.map(() => 0);
    const before = parts.map(part => counts[part]!++);
    this.#draws = { epoch, parts, before };
    return this.#draws;
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

/** One dataset of a mixture in the order of a run. */
interface PartOrder {
  /** Its first row. */
  readonly start: number;
  readonly rows: number;
  /** In each pass. */
  readonly draws: number;
  /** What tells its random stream from those of the others. */
  readonly stream: readonly number[];
  shuffle: { readonly epoch: number; readonly indices: Int32Array } | undefined;
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
  readonly #tasks: Rows<Task>;
  #again: Occurrence[] = [];

  constructor(tasks: Rows<Task>, seed: number) {
    super(tasks, seed);
    this.#tasks = tasks;
  }

  /** Occurrences that come again before the rows behind the cursor. */
  get again(): readonly Started[] {
    return this.#again.map(({ group, task }) => ({ group, task: task.id }));
  }

  /** Continues at `cursor`; what had been begun comes first. */
  override seek(cursor: Cursor, started: readonly Started[] = []): void {
    super.seek(cursor);
    const wanted = new Map(started.map(({ task }) => [task, undefined as Task | undefined]));
    if (wanted.size > 0) for (const task of this.#tasks) if (wanted.has(task.id)) wanted.set(task.id, task);
    this.#again = started.map(({ group, task: id }) => {
      const task = wanted.get(id);
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
    const task = this.#tasks.at(row)!;
    return { task, group: `${task.id}@${epoch}` };
  }
}
