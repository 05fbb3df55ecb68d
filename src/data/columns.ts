export type Row = Readonly<Record<string, unknown>>;

/** A row as its columns. Throws for anything but an object. */
export function columnsOf(row: unknown): Row {
  if (typeof row === 'object' && row !== null && !Array.isArray(row)) return row as Row;
  throw new Error(`expected a JSON object, got ${preview(row)}`);
}

/**
 * The value of a column: of the column of that name, otherwise along the path that its dots make (`answers.text.0`).
 * Undefined where there is none.
 */
export function columnAt(row: Row, key: string): unknown {
  if (Object.hasOwn(row, key)) return row[key];
  return key.split('.').reduce<unknown>((value, name) => {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    return (value as Row)[name];
  }, row);
}

/** The value of a column that must be there. `hint` names the option, and what else may be done. */
export function requiredColumn(row: Row, key: string, hint: string): unknown {
  const value = columnAt(row, key);
  if (value !== undefined) return value;
  throw new Error(`no column "${key}" (${hint}); this row has ${Object.keys(row).join(', ') || 'no columns'}`);
}

/** A value in at most 80 characters. */
export function preview(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
