import { readFileSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { messageOf } from '../episode/failure.ts';
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
}

export interface MalformedRow {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly reason: string;
}

export const DEFAULT_ROW_OPTIONS: RowOptions = {
  inputKey: 'input',
  labelKey: 'label',
  inputTemplate: null,
  applyChatTemplate: false,
};

/** The task of a dataset row. Throws, naming the column and the remedy, when the row does not have what is asked. */
export function rowToTask(row: unknown, options: RowOptions): TaskInput {
  if (typeof row !== 'object' || row === null || Array.isArray(row)) {
    throw new Error(`expected a JSON object, got ${preview(row)}`);
  }
  const columns = row as Readonly<Record<string, unknown>>;
  const { inputKey, labelKey } = options;
  const known = () => `this row has ${Object.keys(columns).join(', ') || 'no columns'}`;
  if (!(inputKey in columns)) throw new Error(`no column "${inputKey}" (data.input_key); ${known()}`);
  if (labelKey !== null && !(labelKey in columns)) {
    throw new Error(`no column "${labelKey}" (data.label_key; set it to null if tasks have no label); ${known()}`);
  }
  return {
    prompt: toPrompt(columns[inputKey], options),
    label: labelKey === null ? '' : toLabel(columns[labelKey], labelKey),
    id: typeof columns.id === 'string' ? columns.id : undefined,
    source: typeof columns.datasource === 'string' ? columns.datasource : undefined,
    metadata: columns,
  };
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

/**
 * Reads the tasks of a JSONL file. `map` makes a task of a row and defaults to the columns `input` and `label`. A
 * malformed row is an error that names file and line, unless `onMalformed` takes it.
 */
export function readJsonl<Row = unknown>(
  path: string,
  map: (row: Row) => TaskInput = row => rowToTask(row, DEFAULT_ROW_OPTIONS),
  onMalformed?: (row: MalformedRow) => void,
): Task[] {
  const source = basename(path, extname(path));
  const lineOf = new Map<string, number>();
  const read = (row: Row, line: number) => {
    const task = toTask(map(row), line, source);
    const earlier = lineOf.get(task.id);
    if (earlier !== undefined) throw new Error(`id "${task.id}" is already that of line ${earlier}`);
    lineOf.set(task.id, line);
    return task;
  };
  return readRows(path, read, onMalformed);
}

/** Reads a JSONL file: one object a line, empty lines passed over. A row that `map` refuses is malformed. */
export function readRows<Row, T>(
  path: string,
  map: (row: Row, line: number) => T,
  onMalformed: (row: MalformedRow) => void = refuse,
): T[] {
  const rows: T[] = [];
  readText(path)
    .split('\n')
    .forEach((text, index) => {
      if (text.trim() === '') return;
      const line = index + 1;
      try {
        rows.push(map(parse(text) as Row, line));
      } catch (error) {
        onMalformed({ file: path, line, reason: messageOf(error) });
      }
    });
  if (rows.length === 0) throw new Error(`${path}: no rows in it; a dataset has one JSON object a line`);
  return rows;
}

function refuse({ file, line, reason }: MalformedRow): never {
  throw new Error(`${file}:${line}: ${reason}. Mend the row, or set data.on_malformed to skip.`);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a directory' : messageOf(error);
    throw new Error(`cannot read the dataset ${path}: ${problem}; give the path of a JSONL file`, { cause: error });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`not JSON (${messageOf(error)})`, { cause: error });
  }
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

function preview(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
