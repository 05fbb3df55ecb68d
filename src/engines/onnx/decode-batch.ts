import type { CachedSequence, KeyValueCache } from './cache.ts';
import type { Row } from './row.ts';

/** Rows that are decoded together: `rows[i]` is row i of the cache. */
export interface DecodeBatch {
  readonly rows: Row[];
  readonly cache: KeyValueCache;
}

/** Rows of one run, and the shortest cache length, where every row's result must be its own. */
export const ISOLATED_ROWS = 16;
const SHORTEST = 64;

/**
 * The rows being decoded. As a rule they are one batch, of any size and as long as its longest row. `isolated` rows are
 * in batches by length (a power of two that follows from the row's own length) which run in blocks of constant size:
 * the shape of every run that a row takes part in then depends on nothing but the row.
 */
export class DecodeBatches {
  readonly #newCache: () => KeyValueCache;
  readonly #isolated: boolean;
  /** By the length of their caches; 0 where there is one for all. */
  readonly #batches = new Map<number, DecodeBatch>();

  constructor(newCache: () => KeyValueCache, isolated: boolean) {
    this.#newCache = newCache;
    this.#isolated = isolated;
  }

  /** Those that have rows. */
  get active(): DecodeBatch[] {
    return [...this.#batches.values()].filter(({ rows }) => rows.length > 0);
  }

  /** Number of rows. */
  get size(): number {
    return this.active.reduce((sum, { rows }) => sum + rows.length, 0);
  }

  /** Makes room for so many more rows at once, where the one batch will have them all. */
  expect(count: number, length: number): void {
    if (!this.#isolated) this.#batchOf(0).cache.reserve(this.size + count, length + 1);
  }

  add(row: Row, sequence: CachedSequence, length = sequence.length): void {
    const cacheLength = this.#lengthFor(length + 1);
    const { cache, rows } = this.#batchOf(cacheLength);
    cache.reserveLength(cacheLength);
    cache.insert(cache.addRow(), sequence, length);
    rows.push(row);
  }

  /** Where a request is being decoded. */
  find(id: number): { readonly batch: DecodeBatch; readonly index: number } | undefined {
    for (const batch of this.active) {
      const index = batch.rows.findIndex(({ request }) => request.id === id);
      if (index >= 0) return { batch, index };
    }
    return undefined;
  }

  /** Takes a row away; the last one of its batch moves into its place. */
  remove({ rows, cache }: DecodeBatch, index: number): void {
    cache.removeRow(index);
    const last = rows.pop()!;
    if (index < rows.length) rows[index] = last;
  }

  /** Moves rows that have filled their cache to where there is room. */
  regroup(): void {
    if (!this.#isolated) return;
    for (const [cacheLength, batch] of this.#batches) {
      for (let index = batch.rows.length - 1; index >= 0; index--) {
        const length = batch.cache.lengths[index]!;
        if (length < cacheLength) continue;
        const row = batch.rows[index]!;
        const sequence = batch.cache.extract(index, length);
        this.remove(batch, index);
        this.add(row, sequence);
      }
    }
  }

  clear(): void {
    for (const { rows, cache } of this.#batches.values()) {
      rows.length = 0;
      cache.clear();
    }
  }

  #batchOf(cacheLength: number): DecodeBatch {
    let batch = this.#batches.get(cacheLength);
    if (batch === undefined) {
      batch = { rows: [], cache: this.#newCache() };
      this.#batches.set(cacheLength, batch);
    }
    return batch;
  }

  #lengthFor(length: number): number {
    return this.#isolated ? Math.max(SHORTEST, 2 ** Math.ceil(Math.log2(length))) : 0;
  }
}
