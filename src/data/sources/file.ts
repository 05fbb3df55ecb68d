import { extname } from 'node:path';
import { csvRows } from './csv.ts';
import { jsonRows } from './json.ts';
import { jsonlRows } from './jsonl.ts';
import { parquetRows } from './parquet.ts';
import type { Source } from './source.ts';

interface Format {
  readonly read: Source;
  /** What its rows are counted by. */
  readonly unit: 'line' | 'row';
}

const JSONL: Format = { read: jsonlRows, unit: 'line' };
const CSV: Format = { read: csvRows, unit: 'row' };

const FORMATS: Readonly<Record<string, Format>> = {
  '.jsonl': JSONL,
  '.ndjson': JSONL,
  '.json': { read: jsonRows, unit: 'row' },
  '.csv': CSV,
  '.tsv': CSV,
  '.parquet': { read: parquetRows, unit: 'row' },
};

/** Whether a file has the extension of a format that is read. */
export function isDataFile(path: string): boolean {
  return extname(path).toLowerCase() in FORMATS;
}

/** The format of a file by its extension; JSONL when it has none that is known. */
export function formatOf(path: string): Format {
  return FORMATS[extname(path).toLowerCase()] ?? JSONL;
}
