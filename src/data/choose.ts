import { isDataFile } from './sources/file.ts';
import { filesOfSplit, isSplitName, type SplitChoice } from './splits.ts';

/**
 * The files of a configuration and split among those of a hub dataset. Configurations are the folders at the top, as
 * the hub's conversion to Parquet lays them out (`config/split/0000.parquet`); `data` is none.
 * @throws naming the configurations when one must be chosen
 */
export function chooseFiles(
  paths: readonly string[],
  { name, config, split }: { readonly name: string; readonly config?: string | undefined; readonly split: SplitChoice },
): readonly string[] {
  const files = paths.filter(isDataFile);
  if (files.length === 0) {
    throw new Error(`${name} has no .jsonl, .json, .csv, .tsv or .parquet file; give the path of files you made of it`);
  }
  const folders = files.map(path => (path.includes('/') ? path.slice(0, path.indexOf('/')) : ''));
  const configs = [...new Set(folders)].filter(folder => folder !== '' && folder !== 'data' && !isSplitName(folder));
  const wanted = config ?? (configs.includes('default') ? 'default' : undefined);
  if (wanted === undefined) {
    const isConverted = configs.length > 1 && folders.every(folder => folder !== '');
    if (!isConverted) return filesOfSplit(files, split, name);
    throw new Error(`${name} has the configurations ${configs.join(', ')}; name one, as in ${name}:${configs[0]}`);
  }
  const chosen = files.filter((_, i) => folders[i] === wanted);
  if (chosen.length > 0) return filesOfSplit(chosen, split, `${name}:${wanted}`);
  throw new Error(`${name} has no configuration ${wanted}; it has ${configs.join(', ') || 'none'}`);
}
