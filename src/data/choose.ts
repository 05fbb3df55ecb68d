import { messageOf } from '../episode/failure.ts';
import { type CardConfig, configsOfCard, defaultConfig } from './card.ts';
import { globMatcher } from './glob.ts';
import { isDataFile } from './sources/file.ts';
import { filesOfSplit, isSplitName, type SplitChoice } from './splits.ts';

/** What is wanted of a dataset. */
export interface Choice {
  readonly name: string;
  readonly config?: string | undefined;
  readonly split: SplitChoice;
}

/** What the hub has of a dataset. */
export interface Repository {
  /** Of its files. */
  readonly paths: readonly string[];
  /** Whether they are the hub's own conversion of the dataset, `config/split/0000.parquet`, whatever its card says. */
  readonly converted: boolean;
  /** Reads the README.md of the dataset; undefined where there is none. */
  readonly card: () => Promise<string | undefined>;
}

/**
 * The files of a configuration and split among those of a hub dataset: those that the `configs` of its card name.
 * Without them, and in the hub's conversion to Parquet, configurations are the folders at the top
 * (`config/split/0000.parquet`); `data` is none.
 * @throws naming the configurations when one must be chosen
 */
export async function chooseFiles({ paths, converted, card }: Repository, choice: Choice): Promise<readonly string[]> {
  const { name, config, split } = choice;
  const files = paths.filter(path => isDataFile(path) && !describes(path));
  if (files.length === 0) throw new Error(`${name} has no ${FORMATS} file; give the path of files you made of it`);
  const configured = async () => configsOf(await card(), name);
  if (!converted) {
    const configs = await configured();
    if (configs.length > 0) return filesOfCard({ paths, files }, configs, choice);
  }
  const folders = files.map(path => (path.includes('/') ? path.slice(0, path.indexOf('/')) : ''));
  const configs = [...new Set(folders)].filter(folder => folder !== '' && folder !== 'data' && !isSplitName(folder));
  let wanted = config ?? (configs.includes('default') ? 'default' : undefined);
  if (wanted === undefined) {
    const several = configs.length > 1 && folders.every(folder => folder !== '');
    if (!several) return filesOfSplit(files, split, name);
    const usual = converted ? usualConfig(await configured(), name)?.name : undefined;
    if (usual === undefined || !configs.includes(usual)) throw unnamed(name, configs);
    wanted = usual;
  }
  const chosen = files.filter((_, i) => folders[i] === wanted);
  if (chosen.length > 0) return filesOfSplit(chosen, split, `${name}:${wanted}`);
  throw new Error(`${name} has no configuration ${wanted}; it has ${configs.join(', ') || 'none'}`);
}

/** `files` are those of `paths` that hold data. */
interface Listing {
  readonly paths: readonly string[];
  readonly files: readonly string[];
}

function filesOfCard(
  listing: Listing,
  configs: readonly CardConfig[],
  { name, config, split }: Choice,
): readonly string[] {
  const names = configs.map(one => one.name);
  const chosen = config === undefined ? usualConfig(configs, name) : configs.find(one => one.name === config);
  if (chosen === undefined) {
    if (config === undefined) throw unnamed(name, names);
    throw new Error(`${name} has no configuration ${config}; it has ${names.join(', ')}`);
  }
  const where = `${name}:${chosen.name}`;
  const { splits, namesSplits, folder } = chosen;
  const from = folder.replace(/^(\.?\/)+|\/+$/g, '');
  if (splits === undefined) {
    const inside = listing.files.filter(path => from === '' || path.startsWith(`${from}/`));
    if (inside.length > 0) return filesOfSplit(inside, split, where);
    throw new Error(`${where} has no ${FORMATS} file${from && ` in ${from}`}`);
  }
  const patterns = splits.get(split.name) ?? (namesSplits || split.given ? undefined : splits.get('train'));
  if (patterns === undefined) {
    throw new Error(`${where} has no split "${split.name}"; it has ${[...splits.keys()].join(', ')}`);
  }
  const found = patterns.flatMap(pattern => matching(listing, from === '' ? pattern : `${from}/${pattern}`, where));
  return [...new Set(found)];
}

function matching({ paths, files }: Listing, pattern: string, where: string): readonly string[] {
  if (pattern.includes('://')) {
    throw new Error(`${where} is kept at ${pattern}, outside of its repository; give the path of files you fetched`);
  }
  const matches = globMatcher(pattern);
  const found = files.filter(matches);
  if (found.length > 0) return found;
  const others = paths.filter(matches).slice(0, 3).join(', ');
  throw new Error(
    `${where} is kept in ${pattern}, and that matches ${others ? `only ${others}` : 'no file'}; ${FORMATS} files can be read`,
  );
}

const FORMATS = '.jsonl, .json, .csv, .tsv or .parquet';

/** Whether a file describes a dataset and holds none of it. */
function describes(path: string): boolean {
  return /(^|\/)(config|dataset_infos?|dataset_dict)\.json$/.test(path);
}

function configsOf(card: string | undefined, name: string): readonly CardConfig[] {
  return card === undefined ? [] : naming(name, () => configsOfCard(card));
}

function usualConfig(configs: readonly CardConfig[], name: string): CardConfig | undefined {
  return naming(name, () => defaultConfig(configs));
}

function naming<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
  }
}

function unnamed(name: string, configs: readonly string[]): Error {
  return new Error(`${name} has the configurations ${configs.join(', ')}; name one, as in ${name}:${configs[0]}`);
}
