/** The split that is wanted: by the user, or for lack of a wish. */
export interface SplitChoice {
  readonly name: string;
  readonly given: boolean;
}

/** Splits that a file's name may tell, and what they are called. */
const SPLITS: Readonly<Record<string, RegExp>> = {
  train: word('train|training'),
  test: word('test|testing|eval|evaluation'),
  validation: word('validation|valid|val|dev'),
};

function word(alternatives: string): RegExp {
  return new RegExp(`(?:^|[/._-])(?:${alternatives})(?=[/._-]|\\d|$)`, 'i');
}

/**
 * The files of a split, told by their names as dataset libraries do: `train.jsonl`, `train-00000-of-00002.parquet`,
 * `train/0000.parquet`, `my_train.csv`. Where no name tells a split, all
 * of them are `train`, and also what is used when none was asked for.
 * @throws when there is no file of this split
 */
export function filesOfSplit(paths: readonly string[], split: SplitChoice, where: string): readonly string[] {
  const wanted = split.name;
  const isExact = (path: string) => segmentsOf(path).some(segment => segment === wanted);
  const exact = paths.filter(isExact);
  if (exact.length > 0) return exact;
  const told = paths.filter(path => (SPLITS[wanted] ?? word(literal(wanted))).test(path));
  if (told.length > 0) return told;
  const silent = paths.every(path => Object.values(SPLITS).every(pattern => !pattern.test(path)));
  if (silent && (!split.given || wanted === 'train')) return paths;
  throw new Error(
    `${where}: no file of the split "${wanted}" among ${paths.slice(0, 10).join(', ')}${paths.length > 10 ? ', …' : ''}; name another split`,
  );
}

/** Whether a folder of this name holds a split. */
export function isSplitName(name: string): boolean {
  return Object.values(SPLITS).some(pattern => pattern.exec(name)?.[0] === name);
}

/** Folders and the name without shard and extension. */
function segmentsOf(path: string): readonly string[] {
  return path.split('/').map(segment => segment.replace(/\.[a-z]+$/i, '').replace(/-\d+-of-\d+$/, ''));
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
