/** A row that cannot be used. */
export interface MalformedRow {
  readonly file: string;
  /** Counted from 1: the line of the file, or the row where lines mean nothing (the header of a CSV is none). */
  readonly line: number;
  /** What `line` counts; `task` when `file` is the id of a task, which says it all. */
  readonly unit?: 'line' | 'row' | 'task';
  readonly reason: string;
}

/** `file:7` for a line, `file, row 7` where rows are no lines. */
export function placeOf({ file, line, unit = 'line' }: MalformedRow): string {
  if (unit === 'task') return `task ${file}`;
  return unit === 'line' ? `${file}:${line}` : `${file}, row ${line}`;
}

/** Throws for the first row that cannot be used. */
export function refuse(row: MalformedRow): never {
  throw new Error(`${placeOf(row)}: ${row.reason}. Mend the row, or set data.on_malformed to skip.`);
}

const SHOWN = 3;

/** Counts rows that are left out, and refuses when there are more than `limit`. */
export class MalformedRows {
  readonly #limit: number;
  readonly #first: MalformedRow[] = [];
  #count = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws when this is one too many. */
  add(row: MalformedRow): void {
    this.#count += 1;
    if (this.#first.length < SHOWN) this.#first.push(row);
    if (this.#count <= this.#limit) return;
    throw new Error(
      `more than ${this.#limit} rows cannot be used (data.max_malformed); the first are\n${this.#shown()}\nMend them, check data.input_key and its like, or raise data.max_malformed`,
    );
  }

  get count(): number {
    return this.#count;
  }

  /** How many were left out and the first of them, a line each; undefined when there are none. */
  summary(name: string): string | undefined {
    if (this.#count === 0) return undefined;
    const rows = this.#count === 1 ? '1 malformed row' : `${this.#count} malformed rows`;
    return `${name}: ${rows} left out, the first:\n${this.#shown()}`;
  }

  #shown(): string {
    return this.#first.map(row => `  ${placeOf(row)}: ${row.reason}`).join('\n');
  }
}
