import { messageOf } from '../episode/failure.ts';
import type { DataFile } from './files.ts';
import { type MalformedRow, placeOf, refuse } from './malformed.ts';
import { concatRows, lazyRows, type Rows } from './rows.ts';
import { formatOf } from './sources/file.ts';
import { decode } from './sources/jsonl.ts';
import { type Bytes, fileBytes, RowIndex, Spool } from './store.ts';

/** Where a row stands. */
export interface RowPlace {
  readonly file: DataFile;
  /** Counted from 1: its line, or its row where lines mean nothing. */
  readonly number: number;
}

export interface LoadOptions<T> {
  /** Makes what is wanted of a row, each time it is read; throws for a row that cannot be used. */
  readonly map: (row: unknown, place: RowPlace) => T;
  /** Called once for each row that can be used, in order; it may throw, too. */
  readonly check?: ((value: T, place: RowPlace) => void) | undefined;
  /** Use only so many rows from the beginning. */
  readonly limit?: number | undefined;
  /** Takes the rows that cannot be used; without it the first of them is an error. */
  readonly onMalformed?: ((row: MalformedRow) => void) | undefined;
}

/**
 * The rows of files, read once from beginning to end, so that faults are known before they are met. What stays in
 * memory is where each row stands (16 bytes): JSON lines are read again from their file, rows of other formats from a
 * copy, which lies on the disk when it is large.
 */
export async function loadRows<T>(files: readonly DataFile[], options: LoadOptions<T>): Promise<Rows<T>> {
  const lists: Rows<T>[] = [];
  const { onMalformed = refuse } = options;
  let malformed = 0;
  let first: MalformedRow | undefined;
  const count = (row: MalformedRow) => {
    malformed += 1;
    first ??= row;
    onMalformed(row);
  };
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  for (const file of files) {
    if (left <= 0) break;
    const rows = await loadFile(file, { ...options, onMalformed: count, limit: left });
    left -= rows.length;
    lists.push(rows);
  }
  if (lists.some(rows => rows.length > 0)) return concatRows(lists);
  const where = files.map(({ path }) => path).join(', ');
  if (first === undefined) throw new Error(`${where}: no rows in it; a dataset has at least one`);
  const all = malformed === 1 ? 'the only row is' : `all ${malformed} rows are`;
  throw new Error(`${where}: no row can be used, ${all} malformed. The first, ${placeOf(first)}: ${first.reason}`);
}

interface FileLoading<T> extends LoadOptions<T> {
  readonly limit: number;
  readonly onMalformed: (row: MalformedRow) => void;
}

async function loadFile<T>(file: DataFile, options: FileLoading<T>): Promise<Rows<T>> {
  const { map, check, limit, onMalformed } = options;
  const { read, unit } = formatOf(file.path);
  const index = new RowIndex();
  const spool = new Spool();
  const original = fileBytes(file.path);
  let bytes: Bytes = original;
  reading: for await (const batch of read(file.path)) {
    for (const { number, value, fault, span } of batch) {
      const place = { file, number };
      try {
        if (fault !== undefined) throw new Error(fault);
        const made = map(value, place);
        check?.(made, place);
      } catch (error) {
        onMalformed({ file: file.path, line: number, unit, reason: messageOf(error) });
        continue;
      }
      if (span === undefined) {
        bytes = spool;
        const json = Buffer.from(JSON.stringify(value));
        index.add(spool.append(json), json.length, number);
      } else {
        index.add(span.start, span.length, number);
      }
      if (index.length >= limit) break reading;
    }
  }
  return lazyRows(index.length, row => {
    const { start, length, number } = index.at(row);
    return map(JSON.parse(decode(bytes.read(start, length))), { file, number });
  });
}
