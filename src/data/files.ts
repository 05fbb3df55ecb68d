import { readdirSync, statSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { isDataFile } from './sources/file.ts';
import { filesOfSplit, type SplitChoice } from './splits.ts';

/** A file of a dataset. */
export interface DataFile {
  readonly path: string;
  /** What its rows are called after. */
  readonly label: string;
}

/** The files of a dataset and its name. */
export interface DataFiles {
  readonly name: string;
  readonly files: readonly DataFile[];
}

/**
 * The data files at a path: the file itself, or those in a directory, whose split is chosen by their names. Undefined
 * when there is nothing.
 */
export function localFiles(path: string, split: SplitChoice): DataFiles | undefined {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there === undefined) return undefined;
  const name = basename(path, extname(path));
  if (there.isDirectory()) return { name: basename(path), files: filesIn(path, split) };
  if (!split.given) return { name, files: [{ path, label: name }] };
  throw new Error(`${path}: a file has no split "${split.name}"; give the split of directories and hub datasets only`);
}

function filesIn(directory: string, split: SplitChoice): readonly DataFile[] {
  const entries = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map(path => path.split('\\').join('/'));
  const paths = entries.filter(path => isDataFile(path) && !/(^|\/)\./.test(path)).sort();
  if (paths.length === 0) {
    throw new Error(`${directory}: no .jsonl, .json, .csv, .tsv or .parquet file in it`);
  }
  return filesOfSplit(paths, split, directory).map(path => ({ path: join(directory, path), label: path }));
}
