import { resolve } from 'node:path';
import { nemoGymTask } from '../agents/nemo-gym/rows.ts';
import { ConfigError } from '../config/error.ts';
import { chooseFiles } from '../data/choose.ts';
import { columnsOf, requiredColumn } from '../data/columns.ts';
import { type DataFiles, localFiles } from '../data/files.ts';
import { loadRows } from '../data/load.ts';
import { type MalformedRow, MalformedRows } from '../data/malformed.ts';
import { mixRows } from '../data/mixture.ts';
import { parseReference } from '../data/reference.ts';
import { type ColumnMapping, renameColumns } from '../data/renaming.ts';
import { concatRows, filterRows, type Rows } from '../data/rows.ts';
import type { SplitChoice } from '../data/splits.ts';
import { unreadable } from '../data/unreadable.ts';
import { messageOf } from '../episode/failure.ts';
import type { Task } from '../episode/task.ts';
import type { Values } from '../options/option.ts';
import type { dataOptions } from '../rollout/options.ts';
import { checkRoom, type Room } from '../rollout/prompt-room.ts';
import { loadTasks, rowToTask, type TaskInput } from '../rollout/tasks.ts';
import type { CommandContext } from './command.ts';
import { downloadLine } from './model.ts';
import { type NemoGymValues, usesNemoGym } from './nemo-gym.ts';

export type DatasetSurroundings = Pick<CommandContext<Record<never, never>>, 'cwd' | 'stderr'> &
  Partial<Pick<CommandContext<Record<never, never>>, 'interrupt' | 'env'>>;

type Columns = Omit<Values<typeof dataOptions>, 'data.max_samples' | 'data.column_mapping'> &
  Partial<Values<Pick<typeof dataOptions, 'data.column_mapping'>>> &
  Partial<NemoGymValues>;

/** What to do with rows that cannot be used. */
export type RowPolicy = Pick<Columns, 'data.on_malformed' | 'data.max_malformed'>;

/** Several datasets, given as a list or separated by commas, and how they are mixed. */
export interface Mixing {
  readonly datasets: string | readonly string[];
  /** One for each; without it they are put together and every row is drawn alike. */
  readonly probabilities?: readonly number[] | undefined;
  readonly split?: string | undefined;
  /** The split when none is given; train when not said. */
  readonly usual?: string | undefined;
  /** Of each dataset. */
  readonly limit?: number | undefined;
  /** Columns by the names they are to have; of example rows only. */
  readonly renamed?: ColumnMapping | undefined;
}

/** The tasks to train on as the data options describe them. Rows that are left out are counted on `stderr`. */
export function loadTrainingTasks(
  mixing: Mixing,
  values: Columns,
  surroundings: DatasetSurroundings,
): Promise<Rows<Task>> {
  return loadMixture(mixing, values, surroundings, (files, several, onMalformed) => {
    const { name } = files;
    const named = several
      ? { name, files: files.files.map(file => ({ ...file, label: `${name}/${file.label}` })) }
      : files;
    return loadTasks(named, { map: taskOf(values), limit: mixing.limit, onMalformed });
  });
}

/** The tasks of `eval.dataset`: of datasets given alone or as name=dataset, which then is the source of its tasks. */
export async function loadEvaluationTasks(
  datasets: string | readonly string[],
  values: Columns,
  surroundings: DatasetSurroundings,
  { limit, split }: { readonly limit?: number | undefined; readonly split?: string | undefined } = {},
): Promise<Task[]> {
  const all: Task[] = [];
  for (const dataset of listOf(datasets)) {
    const [, name, given] = /^(?:([\w.-]+)=)?(.+)$/.exec(dataset)!;
    const tasks = await loadDataset(given!, splitOf(split, 'test'), values, surroundings, (files, onMalformed) =>
      loadTasks(files, { map: taskOf(values), limit, onMalformed }),
    );
    for (const task of tasks) all.push(name === undefined ? task : { ...task, id: `${name}:${task.id}`, source: name });
  }
  return all;
}

/** The datasets, each read by `load`, as one. Faults are the user's. */
export async function loadMixture<T>(
  { datasets, probabilities, split, usual = 'train' }: Mixing,
  policy: RowPolicy,
  surroundings: DatasetSurroundings,
  load: (files: DataFiles, several: boolean, onMalformed?: (row: MalformedRow) => void) => Promise<Rows<T>>,
): Promise<Rows<T>> {
  const given = listOf(datasets);
  const lists: Rows<T>[] = [];
  for (const dataset of given) {
    lists.push(
      await loadDataset(dataset, splitOf(split, usual), policy, surroundings, (files, onMalformed) =>
        load(files, given.length > 1, onMalformed),
      ),
    );
  }
  return faultsOfUser(() => (probabilities ? mixRows(lists, probabilities) : concatRows(lists)));
}

/** Examples of the rows of datasets. A counter takes the rows that cannot be used, however many there are. */
export function loadExampleRows<E>(
  mixing: Mixing,
  read: (row: unknown) => E,
  policy: RowPolicy | { malformed: number },
  surroundings: DatasetSurroundings,
): Promise<Rows<E>> {
  const { limit, renamed = {} } = mixing;
  const rename = renameColumns(renamed);
  const map = (row: unknown) => read(rename(row));
  if (!('malformed' in policy)) {
    return loadMixture(mixing, policy, surroundings, ({ files }, _several, onMalformed) =>
      loadRows(files, { map, limit, onMalformed }),
    );
  }
  return loadMixture(mixing, COUNT_ALL, surroundings, ({ files }, _several, onMalformed) => {
    const count = (row: MalformedRow) => {
      policy.malformed += 1;
      onMalformed?.(row);
    };
    return loadRows(files, { map, limit, onMalformed: count });
  });
}

const COUNT_ALL: RowPolicy = { 'data.on_malformed': 'skip', 'data.max_malformed': Number.POSITIVE_INFINITY };

/** One dataset. Rows that are left out are told on `stderr`. */
async function loadDataset<T>(
  dataset: string,
  split: SplitChoice,
  policy: RowPolicy,
  surroundings: DatasetSurroundings,
  load: (files: DataFiles, onMalformed?: (row: MalformedRow) => void) => Promise<T>,
): Promise<T> {
  const skipped = new MalformedRows(policy['data.max_malformed']);
  try {
    const files = await locate(dataset, split, surroundings);
    return await load(files, policy['data.on_malformed'] === 'skip' ? row => skipped.add(row) : undefined);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  } finally {
    const summary = skipped.summary(dataset);
    if (summary !== undefined) surroundings.stderr.write(`${summary}\n`);
  }
}

/** A path goes first; what has the form organisation/name is fetched from the hub. */
async function locate(
  dataset: string,
  split: SplitChoice,
  { cwd, stderr, interrupt, env }: DatasetSurroundings,
): Promise<DataFiles> {
  const path = resolve(cwd, dataset);
  const local = localFiles(path, split);
  if (local !== undefined) return local;
  const reference = parseReference(dataset);
  if (reference === undefined) throw unreadable(path);
  const { fetchDataset } = await import('../nn/checkpoint/hub-dataset.ts');
  const line = downloadLine(dataset, stderr);
  try {
    const { name, revision, config } = reference;
    const wanted = reference.split === undefined ? split : { name: reference.split, given: true };
    const files = await fetchDataset(name, {
      revision,
      choice: `${config ?? 'default'} ${wanted.name}`,
      choose: repository => chooseFiles(repository, { name, config, split: wanted }),
      signal: interrupt?.signal,
      onProgress: line.show,
      ...(env && { env: { ...process.env, ...env } }),
    });
    return { name: name.split('/').at(-1)!, files };
  } catch (error) {
    interrupt?.signal.throwIfAborted();
    throw new Error(`${messageOf(error)} (${path} is no file or directory either)`, { cause: error });
  } finally {
    line.end();
  }
}

/** Tasks whose prompt leaves room for an answer; the others are malformed. */
export function tasksWithRoom(
  tasks: Rows<Task>,
  room: Room,
  policy: RowPolicy,
  { stderr }: Pick<DatasetSurroundings, 'stderr'>,
): Rows<Task> {
  const skipped = new MalformedRows(policy['data.max_malformed']);
  const fits = (task: Task): boolean => {
    try {
      checkRoom(task, room);
      return true;
    } catch (error) {
      const reason = `task ${task.id}: ${messageOf(error)}`;
      if (policy['data.on_malformed'] === 'error') {
        throw new Error(`${reason}. Mend its row, or set data.on_malformed to skip.`, { cause: error });
      }
      skipped.add({ file: task.id, line: 0, unit: 'task', reason: messageOf(error) });
      return false;
    }
  };
  const kept = faultsOfUser(() => filterRows(tasks, fits));
  const summary = skipped.summary('prompts');
  if (summary !== undefined) stderr.write(`${summary}\n`);
  return kept;
}

function taskOf(values: Columns): (row: unknown, file: string) => TaskInput {
  const label = values['data.label_key'];
  const rename = renameColumns(values['data.column_mapping'] ?? {});
  if (usesNemoGym(values)) {
    return given => {
      const row = rename(given);
      const labelled = label && { label: String(requiredColumn(columnsOf(row), label, 'data.label_key')) };
      return { ...nemoGymTask(row), ...labelled };
    };
  }
  const columns = {
    inputKey: values['data.input_key'],
    labelKey: values['data.label_key'] ?? null,
    inputTemplate: values['data.input_template'] ?? null,
    applyChatTemplate: values['data.apply_chat_template'],
    imageKey: values['data.image_key'],
    maxImages: values['data.max_images_per_prompt'],
  };
  return (row, file) => rowToTask(rename(row), columns, file);
}

function splitOf(split: string | undefined, usual: string): SplitChoice {
  return { name: split ?? usual, given: split !== undefined };
}

function listOf(datasets: string | readonly string[]): readonly string[] {
  return typeof datasets === 'string' ? datasets.split(',').map(one => one.trim()) : datasets;
}

function faultsOfUser<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}
