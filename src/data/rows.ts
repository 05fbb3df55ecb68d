/** One dataset of a mixture: how many rows it has, and the share of the draws that come from it. */
export interface Part {
  readonly rows: number;
  /** In (0, 1]; the shares of a mixture add up to 1. */
  readonly share: number;
}

/**
 * Rows by their index, in a fixed order. An array is such a list; others read a row when it is asked for and keep none,
 * so that a dataset may be larger than memory.
 */
export interface Rows<T> {
  readonly length: number;
  /** The row at `index`; undefined outside of the list. */
  at(index: number): T | undefined;
  [Symbol.iterator](): Iterator<T>;
  /** The datasets one after another that these rows are a mixture of; without it every row is drawn alike. */
  readonly mixture?: readonly Part[];
}

/** Rows that `read` gives for their index. */
export function lazyRows<T>(length: number, read: (index: number) => T, mixture?: readonly Part[]): Rows<T> {
  return {
    length,
    at: index => (index >= 0 && index < length ? read(index) : undefined),
    *[Symbol.iterator]() {
      for (let i = 0; i < length; i++) yield read(i);
    },
    ...(mixture && { mixture }),
  };
}

/** Each row as `map` shows it, when it is asked for. */
export function mapRows<A, B>(rows: Rows<A>, map: (row: A, index: number) => B): Rows<B> {
  return lazyRows(rows.length, index => map(rows.at(index) as A, index), rows.mixture);
}

/** One list after another. */
export function concatRows<T>(lists: readonly Rows<T>[], mixture?: readonly Part[]): Rows<T> {
  const [only] = lists;
  if (lists.length === 1 && only && mixture === undefined) return only;
  const starts: number[] = [];
  let length = 0;
  for (const rows of lists) {
    starts.push(length);
    length += rows.length;
  }
  const read = (index: number): T => {
    const list = starts.findLastIndex(start => start <= index);
    return lists[list]!.at(index - starts[list]!) as T;
  };
  return lazyRows(length, read, mixture);
}

/** The rows that `keep` says yes to, each asked once; in a mixture the parts keep their shares. */
export function filterRows<T>(rows: Rows<T>, keep: (row: T, index: number) => boolean): Rows<T> {
  const kept: number[] = [];
  let index = 0;
  for (const row of rows) {
    if (keep(row, index)) kept.push(index);
    index += 1;
  }
  if (kept.length === rows.length) return rows;
  if (kept.length === 0) throw new Error('no row is left that can be used');
  const indices = Float64Array.from(kept);
  let start = 0;
  const mixture = rows.mixture?.map(({ rows: count, share }) => {
    const end = start + count;
    const left = kept.filter(one => one >= start && one < end).length;
    start = end;
    return { rows: left, share };
  });
  return lazyRows(kept.length, i => rows.at(indices[i]!) as T, mixture);
}
