/** A row as a file holds it. */
export interface RawRow {
  /** Counted from 1: the line, or the row where lines mean nothing. */
  readonly number: number;
  /** What the row holds, in the types of JSON. */
  readonly value?: unknown;
  /** Why there is no value. */
  readonly fault?: string;
  /** Where its JSON stands in the file, in bytes; without it the row must be kept elsewhere. */
  readonly span?: { readonly start: number; readonly length: number };
}

/** Reads a file from its beginning, some rows at a time. */
export type Source = (path: string) => AsyncIterable<readonly RawRow[]>;
