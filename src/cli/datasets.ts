import { resolve } from 'node:path';
import { ConfigError } from '../config/error.ts';
import { messageOf } from '../episode/failure.ts';
import type { Task } from '../episode/task.ts';
import type { Values } from '../options/option.ts';
import type { dataOptions } from '../rollout/options.ts';
import { type MalformedRow, readJsonl, rowToTask } from '../rollout/tasks.ts';
import type { ConsoleStream } from '../tracking/console.ts';

/** The tasks of a dataset as the data options describe it. Rows that are left out are counted on `stderr`. */
export function loadTasks(
  path: string,
  values: Omit<Values<typeof dataOptions>, 'data.max_samples'>,
  { cwd, stderr, limit }: { readonly cwd: string; readonly stderr: ConsoleStream; readonly limit?: number | undefined },
): Task[] {
  const columns = {
    inputKey: values['data.input_key'],
    labelKey: values['data.label_key'] ?? null,
    inputTemplate: values['data.input_template'] ?? null,
    applyChatTemplate: values['data.apply_chat_template'],
  };
  return reportingRows(path, values['data.on_malformed'], stderr, onMalformed =>
    readJsonl(resolve(cwd, path), row => rowToTask(row, columns), onMalformed).slice(0, limit),
  );
}

/** The tasks of `eval.dataset`: of files given as path or name=path, which then is the source of its tasks. */
export function loadEvaluationTasks(
  datasets: string | readonly string[],
  values: Parameters<typeof loadTasks>[1],
  surroundings: Parameters<typeof loadTasks>[2],
): Task[] {
  return [datasets].flat().flatMap(dataset => {
    const named = /^([\w.-]+)=(.+)$/.exec(dataset);
    if (named === null) return loadTasks(dataset, values, surroundings);
    const [, name, path] = named;
    return loadTasks(path!, values, surroundings).map(task => ({ ...task, id: `${name}:${task.id}`, source: name! }));
  });
}

/** Runs `read`, whose faults are the user's, and tells how many malformed rows were left out. */
export function reportingRows<T>(
  path: string,
  policy: 'error' | 'skip',
  stderr: ConsoleStream,
  read: (onMalformed?: (row: MalformedRow) => void) => T,
): T {
  const skipped: MalformedRow[] = [];
  try {
    return policy === 'skip' ? read(row => skipped.push(row)) : read();
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  } finally {
    const [first] = skipped;
    if (first)
      stderr.write(
        `${path}: ${skipped.length} malformed rows left out, the first is line ${first.line}: ${first.reason}\n`,
      );
  }
}
