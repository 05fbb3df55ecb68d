import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CachedSequence, KeyValueCache } from './cache.ts';

const SHAPE = { layers: 2, kvHeads: 3, headDim: 2 };
const PARTS = 2 * SHAPE.layers;

/** What one cached position of one row holds: for every layer, part and head D numbers that occur nowhere else. */
type Position = number;
const valueAt = (position: Position, part: number, head: number, d: number) =>
  Math.fround(((position * PARTS + part) * SHAPE.kvHeads + head) * SHAPE.headDim + d);

/** What a graph gives for rows of equally many new positions, one row after another: [N, 2·layers, K, D]. */
function appendedOf(rows: readonly (readonly Position[])[]): Float32Array {
  const values = (position: Position) =>
    Array.from({ length: PARTS }, (_, part) =>
      Array.from({ length: SHAPE.kvHeads }, (_, head) => [0, 1].map(d => valueAt(position, part, head, d))).flat(),
    ).flat();
  return Float32Array.from(rows.flat().flatMap(values));
}

/** One layer's keys or values of a sequence: [K, n, D] */
const partOf = (positions: readonly Position[], part: number) =>
  Array.from({ length: SHAPE.kvHeads }, (_, head) =>
    positions.flatMap(position => [0, 1].map(d => valueAt(position, part, head, d))),
  ).flat();

const partsOf = (positions: readonly Position[]) => Array.from({ length: PARTS }, (_, part) => partOf(positions, part));

/** [layers, 2, K, n, D] */
function stored(positions: readonly Position[]): CachedSequence {
  return { data: Float32Array.from(partsOf(positions).flat()), length: positions.length };
}

/** The rows of a cache, read through the views that a graph reads. */
function rowsOf(cache: KeyValueCache): number[][][] {
  return Array.from({ length: cache.rows }, (_, row) =>
    Array.from({ length: PARTS }, (_, part) => {
      const view = cache.views(row, 1)[part]!;
      expect(view).toHaveLength(SHAPE.kvHeads * cache.length * SHAPE.headDim);
      return Array.from({ length: SHAPE.kvHeads }, (_, head) => {
        const start = head * cache.length * SHAPE.headDim;
        return [...view.subarray(start, start + cache.lengths[row]! * SHAPE.headDim)];
      }).flat();
    }),
  );
}

const expectedRows = (model: readonly (readonly Position[])[]) => model.map(partsOf);

type Operation =
  | { readonly kind: 'add' }
  | { readonly kind: 'remove'; readonly at: number }
  | { readonly kind: 'append'; readonly at: number; readonly counts: readonly number[] }
  | { readonly kind: 'copy'; readonly at: number; readonly share: number }
  | { readonly kind: 'grow'; readonly by: number }
  | { readonly kind: 'clear' };

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('add' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      at: fc.nat(),
      counts: fc.array(fc.nat(40), { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('copy' as const),
      at: fc.nat(),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('grow' as const), by: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
);

describe('KeyValueCache', () => {
  it('holds what arrays of positions would, whatever is done to it', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), operations => {
        const cache = new KeyValueCache(SHAPE);
        let model: Position[][] = [];
        let next = 0;
        for (const step of operations) {
          if (step.kind === 'add') {
            expect(cache.addRow()).toBe(model.length);
            model.push([]);
          } else if (step.kind === 'clear') {
            cache.clear();
            model = [];
            expect(cache.bytes).toBe(0);
          } else if (model.length === 0) {
            continue;
          } else if (step.kind === 'remove') {
            const row = step.at % model.length;
            expect(cache.removeRow(row)).toBe(model.length - 1);
            // The last row takes the free place.
            const last = model.pop()!;
            if (row < model.length) model[row] = last;
          } else if (step.kind === 'append') {
            // One graph run gives a chunk for several rows, of which each takes the first `count` positions.
            const rows = step.counts
              .slice(0, model.length)
              .map((count, i) => ({ row: (step.at + i) % model.length, count }));
            const C = Math.max(1, ...rows.map(({ count }) => count));
            const fresh = rows.map(() => Array.from({ length: C }, () => next++));
            const appended = appendedOf(fresh);
            cache.reserveLength(Math.max(...rows.map(({ row, count }) => model[row]!.length + count)));
            rows.forEach(({ row, count }, i) => {
              cache.append(row, appended, i * C, count);
              model[row]!.push(...fresh[i]!.slice(0, count));
            });
          } else if (step.kind === 'copy') {
            const from = step.at % model.length;
            const length = Math.round(step.share * model[from]!.length);
            const sequence = cache.extract(from, model[from]!.length);
            expect(sequence).toEqual(stored(model[from]!));
            cache.insert(cache.addRow(), sequence, length);
            model.push(model[from]!.slice(0, length));
          } else {
            cache.reserveLength(cache.length + step.by);
          }
          expect(cache.rows).toBe(model.length);
          expect(cache.lengths.slice(0, cache.rows)).toEqual(model.map(positions => positions.length));
          expect(rowsOf(cache)).toEqual(expectedRows(model));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('shows several rows as one view, the same one until something moves', () => {
    const cache = new KeyValueCache(SHAPE);
    for (let row = 0; row < 3; row++) cache.append(cache.addRow(), appendedOf([[row]]), 0, 1);
    const views = cache.views(1, 2);
    const size = SHAPE.kvHeads * cache.length * SHAPE.headDim;
    expect(views[3]).toHaveLength(2 * size);
    expect([views[3]![0], views[3]![size]]).toEqual([valueAt(1, 3, 0, 0), valueAt(2, 3, 0, 0)]);
    cache.append(0, appendedOf([[7]]), 0, 1);
    expect(cache.views(1, 2)).toBe(views);
    expect(cache.views(0, 2)).not.toEqual(views);
    cache.reserveLength(cache.length + 1);
    expect(cache.views(1, 2)[3]).toHaveLength(2 * SHAPE.kvHeads * cache.length * SHAPE.headDim);
  });

  it('refuses to write past its length', () => {
    const cache = new KeyValueCache(SHAPE);
    const row = cache.addRow();
    const positions = Array.from({ length: cache.length + 1 }, (_, i) => i);
    expect(() => cache.append(row, appendedOf([positions]), 0, positions.length)).toThrow(
      `cache row 0 is full at ${cache.length} tokens`,
    );
    cache.append(row, appendedOf([positions]), 0, cache.length);
    expect(() => cache.append(row, appendedOf([[0]]), 0, 1)).toThrow('cache row 0 is full');
  });

  it('gets shorter again once it is empty, so that short rows are not read at the length of long ones', () => {
    const cache = new KeyValueCache(SHAPE);
    const short = cache.length;
    cache.addRow();
    cache.reserveLength(10 * short);
    expect(cache.length).toBe(10 * short);
    cache.removeRow(0);
    expect(cache.length).toBe(short);
  });
});
