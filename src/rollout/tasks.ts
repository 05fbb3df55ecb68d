import { basename, extname } from 'node:path';
import { columnAt, columnsOf, preview, requiredColumn } from '../data/columns.ts';
import type { DataFiles } from '../data/files.ts';
import { imagesOf } from '../data/images.ts';
import { type LoadOptions, loadRows, type RowPlace } from '../data/load.ts';
import { type MalformedRow, placeOf } from '../data/malformed.ts';
import type { Rows } from '../data/rows.ts';
import { readLines } from '../data/sources/jsonl.ts';
import type { Image, Message, Task } from '../episode/task.ts';

/** What a dataset row has to say about a task; the rest is filled in. */
export interface TaskInput {
  readonly prompt: string | readonly Message[];
  readonly label?: string | undefined;
  /** Defaults to the row's place in its dataset. */
  readonly id?: string | undefined;
  /** Groups evaluation metrics; defaults to the name of the dataset. */
  readonly source?: string | undefined;
  readonly images?: readonly Image[] | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** How the columns of a dataset become a task. */
export interface RowOptions {
  readonly inputKey: string;
  /** Column of the label; null: tasks have none. */
  readonly labelKey: string | null;
  /** `{}` is replaced by the prompt text; null: none. */
  readonly inputTemplate: string | null;
  /** Prompt text becomes a user message, rendered by the chat template, instead of being fed as it is. */
  readonly applyChatTemplate: boolean;
  /** Column of the images of the prompt. */
  readonly imageKey: string;
  /** 0: the column is not read. */
  readonly maxImages: number;
}

export const DEFAULT_ROW_OPTIONS: RowOptions = {
  inputKey: 'input',
  labelKey: 'label',
  inputTemplate: null,
  applyChatTemplate: false,
  imageKey: 'images',
  maxImages: 0,
};

/**
 * The task of a dataset row. `file` is where paths of images start. Throws, naming the column and the remedy, when the
 * row does not have what is asked.
 */
export function rowToTask(row: unknown, options: RowOptions, file = ''): TaskInput {
  const columns = columnsOf(row);
  const { inputKey, labelKey } = options;
  const prompt = requiredColumn(columns, inputKey, 'data.input_key');
  const label =
    labelKey === null
      ? ''
      : toLabel(requiredColumn(columns, labelKey, 'data.label_key; set it to null if tasks have no label'), labelKey);
  const images = rowImages(columns, options, file);
  return {
    prompt: toPrompt(prompt, options),
    label,
    id: typeof columns.id === 'string' ? columns.id : undefined,
    source: typeof columns.datasource === 'string' ? columns.datasource : undefined,
    metadata: columns,
    ...(images.length > 0 && { images }),
  };
}

function rowImages(columns: Readonly<Record<string, unknown>>, options: RowOptions, file: string): readonly Image[] {
  const { imageKey, maxImages } = options;
  if (maxImages === 0) return [];
  const images = imagesOf(columnAt(columns, imageKey), file);
  if (images.length <= maxImages) return images;
  throw new Error(
    `column "${imageKey}" (data.image_key) holds ${images.length} images, and data.max_images_per_prompt is ${maxImages}`,
  );
}

/** A complete task: `index` and `source` fill in what the row does not say. */
export function toTask(input: TaskInput, index: number, source: string): Task {
  return {
    id: input.id ?? `${source}:${index}`,
    prompt: input.prompt,
    label: input.label ?? '',
    source: input.source ?? source,
    metadata: input.metadata ?? {},
    ...(input.images ? { images: input.images } : {}),
  };
}

export interface TaskLoading extends Pick<LoadOptions<Task>, 'limit' | 'onMalformed'> {
  /** Makes a task of a row of `file`. */
  readonly map: (row: unknown, file: string) => TaskInput;
  /** Throws for a task that cannot be attempted: a prompt that is too long, a template that fails. */
  readonly check?: ((task: Task) => void) | undefined;
}

/**
 * The tasks of a dataset, made when they are asked for. Those without an id are called after their file and line, those
 * without a source after the dataset. Two with the same id are an error of the later row.
 */
export function loadTasks({ name, files }: DataFiles, options: TaskLoading): Promise<Rows<Task>> {
  const { map, check, ...rest } = options;
  const placeOfId = new Map<string, string>();
  return loadRows<Task>(files, {
    ...rest,
    map: (row, { file, number }) => {
      const input = map(row, file.path);
      return toTask({ ...input, id: input.id ?? `${file.label}:${number}` }, number, name);
    },
    check: (task, place) => {
      check?.(task);
      // Ids that were made are as different as their places.
      if (task.id === `${place.file.label}:${place.number}`) return;
      const earlier = placeOfId.get(task.id);
      if (earlier !== undefined) throw new Error(`id "${task.id}" is already that of ${earlier}`);
      placeOfId.set(task.id, earlierPlace(place, files.length));
    },
  });
}

function earlierPlace({ file, number }: RowPlace, files: number): string {
  return files === 1 ? `line ${number}` : placeOf({ file: file.path, line: number, reason: '' });
}

/**
 * Reads the tasks of a JSONL file into memory. `map` makes a task of a row and defaults to the columns `input` and
 * `label`. A malformed row is an error that names file and line, unless `onMalformed` takes it.
 */
export function readJsonl<Row = unknown>(
  path: string,
  map: (row: Row) => TaskInput = row => rowToTask(row, DEFAULT_ROW_OPTIONS),
  onMalformed?: (row: MalformedRow) => void,
): Task[] {
  const source = basename(path, extname(path));
  const lineOf = new Map<string, number>();
  const read = (row: unknown, line: number) => {
    const task = toTask(map(row as Row), line, source);
    const earlier = lineOf.get(task.id);
    if (earlier !== undefined) throw new Error(`id "${task.id}" is already that of line ${earlier}`);
    lineOf.set(task.id, line);
    return task;
  };
  return readLines(path, read, onMalformed);
}

function toPrompt(value: unknown, options: RowOptions): string | readonly Message[] {
  if (Array.isArray(value) && value.length > 0 && value.every(isMessage)) return value;
  if (typeof value !== 'string' || value === '') {
    throw new Error(
      `column "${options.inputKey}" must be text or a list of messages {role, content}, got ${preview(value)}`,
    );
  }
  const text = options.inputTemplate === null ? value : options.inputTemplate.replace('{}', () => value);
  return options.applyChatTemplate ? [{ role: 'user', content: text }] : text;
}

function toLabel(value: unknown, key: string): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new Error(`column "${key}" must be text, a number or a boolean, got ${preview(value)}`);
}

/** Whether a value is a chat message: an object with a role and text. */
export function isMessage(value: unknown): value is Message {
  if (typeof value !== 'object' || value === null) return false;
  const { role, content } = value as Partial<Message>;
  return typeof role === 'string' && typeof content === 'string';
}
