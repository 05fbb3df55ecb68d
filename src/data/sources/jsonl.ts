import { createReadStream, readFileSync } from 'node:fs';
import { messageOf } from '../../episode/failure.ts';
import { type MalformedRow, refuse } from '../malformed.ts';
import { unreadable } from '../unreadable.ts';
import type { RawRow } from './source.ts';

const NEWLINE = 10;
const BUFFER_BYTES = 1 << 20;

/** One JSON value a line; empty lines are passed over. */
export async function* jsonlRows(path: string): AsyncGenerator<readonly RawRow[]> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let start = 0;
  let number = 0;
  const line = (bytes: Buffer): RawRow | undefined => {
    const row = lineOf(bytes, ++number, start);
    start += bytes.length + 1;
    return row;
  };
  for await (const chunk of createReadStream(path, { highWaterMark: BUFFER_BYTES }) as AsyncIterable<Buffer>) {
    const rows: RawRow[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const piece = chunk.subarray(from, end);
      const row = line(heldBytes > 0 ? Buffer.concat([...held, piece]) : piece);
      if (row) rows.push(row);
      [held, heldBytes] = [[], 0];
      from = end + 1;
    }
    if (from < chunk.length) {
      held.push(chunk.subarray(from));
      heldBytes += chunk.length - from;
    }
    yield rows;
  }
  const last = heldBytes > 0 ? line(Buffer.concat(held)) : undefined;
  if (last) yield [last];
}

function lineOf(bytes: Buffer, number: number, start: number): RawRow | undefined {
  try {
    const text = decode(bytes);
    if (text.trim() === '') return undefined;
    return { number, value: JSON.parse(text), span: { start, length: bytes.length } };
  } catch (error) {
    return { number, fault: `not JSON (${messageOf(error)})` };
  }
}

/** Text of UTF-8 bytes, without a byte-order mark. Throws for other bytes. */
export function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

/** The rows of a small file at once, as `map` makes them; a row that `map` refuses is malformed. */
export function readLines<T>(
  path: string,
  map: (row: unknown, line: number) => T,
  onMalformed: (row: MalformedRow) => void = refuse,
): T[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(path, error);
  }
  const rows: T[] = [];
  text.split('\n').forEach((content, index) => {
    const row = lineOf(Buffer.from(content), index + 1, 0);
    if (row === undefined) return;
    try {
      if (row.fault !== undefined) throw new Error(row.fault);
      rows.push(map(row.value, row.number));
    } catch (error) {
      onMalformed({ file: path, line: row.number, reason: messageOf(error) });
    }
  });
  if (rows.length === 0) throw new Error(`${path}: no rows in it; a dataset has one JSON object a line`);
  return rows;
}
