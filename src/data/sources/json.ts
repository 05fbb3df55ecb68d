import { open, readFile } from 'node:fs/promises';
import { messageOf } from '../../episode/failure.ts';
import { decode, jsonlRows } from './jsonl.ts';
import type { RawRow } from './source.ts';

/** A longer text is none that JavaScript can hold. */
const MOST_BYTES = 500e6;

/** An array of rows; a file that begins with an object is read as one object a line. */
export async function* jsonRows(path: string): AsyncGenerator<readonly RawRow[]> {
  if ((await firstCharacter(path)) === '{') {
    yield* jsonlRows(path);
    return;
  }
  const bytes = await readFile(path);
  if (bytes.length > MOST_BYTES) {
    throw new Error(
      `${path}: a JSON array of ${Math.ceil(bytes.length / 1e6)} MB must be read at once and is too large for that; write one object a line (.jsonl)`,
    );
  }
  let rows: unknown;
  try {
    rows = JSON.parse(decode(bytes));
  } catch (error) {
    throw new Error(`${path}: not JSON (${messageOf(error)})`, { cause: error });
  }
  if (!Array.isArray(rows)) throw new Error(`${path}: expected an array of rows, or one object a line`);
  yield rows.map((value, i) => ({ number: i + 1, value }));
}

async function firstCharacter(path: string): Promise<string | undefined> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, 0);
    return buffer
      .subarray(0, bytesRead)
      .toString('utf8')
      .replace(/^\uFEFF/, '')
      .trimStart()[0];
  } finally {
    await file.close();
  }
}
