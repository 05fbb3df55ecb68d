import { messageOf } from '../episode/failure.ts';

const FORMS =
  'give a file (JSONL, JSON, CSV or Parquet), a directory of them, or the name of a dataset on the Hugging Face hub (organisation/name, or name alone)';

/** Why there is nothing to read at `path`. */
export function unreadable(path: string, cause?: unknown): Error {
  const { code } = (cause ?? { code: 'ENOENT' }) as NodeJS.ErrnoException;
  const problem = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a directory' : messageOf(cause);
  return new Error(`cannot read the dataset ${path}: ${problem}; ${FORMS}`, { cause });
}
