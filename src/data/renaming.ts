import { columnsOf, preview, type Row, requiredColumn } from './columns.ts';

/** Our name of a column → theirs, which may lead into columns (`answers.text.0`). */
export type ColumnMapping = Readonly<Record<string, string>>;

/** Columns that say what a row is called; datasets often number their rows. */
const TEXTUAL: readonly string[] = ['id', 'datasource'];

/**
 * Shows rows with their columns renamed: without the columns that a new name stands for, and every other as it is. A
 * value that is led to is copied out of its column, which stays. Where a row has a column of a new name already, the
 * renamed one takes its place. Numbers become text in `id` and `datasource`.
 * @throws for a row without one of their columns, naming those that it has
 */
export function renameColumns(mapping: ColumnMapping): (row: unknown) => unknown {
  const names = Object.entries(mapping);
  if (names.length === 0) return row => row;
  const theirs = new Set(Object.values(mapping));
  return row => {
    const columns = columnsOf(row);
    const kept = Object.entries(columns).filter(([name]) => !theirs.has(name));
    const renamed = names.map(([name, source]) => [name, renamedValue(columns, name, source)]);
    return Object.fromEntries([...kept, ...renamed]);
  };
}

function renamedValue(columns: Row, name: string, source: string): unknown {
  const value = requiredColumn(columns, source, `data.column_mapping makes it "${name}"`);
  if (!TEXTUAL.includes(name) || typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  throw new Error(
    `column "${source}" must be text or a number to be "${name}" (data.column_mapping), got ${preview(value)}`,
  );
}
