import { MASKED } from '../../nn/models/attention.ts';
import { kindInput } from '../../nn/models/layers.ts';
import type { Model } from './model.ts';
import { type Rows, rowMask } from './rows.ts';

/**
 * The inputs of a graph that say where tokens stand and what they may attend to: rotary tables and masks, one for each
 * kind of layer the model has (see nn/models/decoder.ts).
 */

type Source = Pick<Model, 'config' | 'rotary'>;
type Feeds = Record<string, Float32Array>;

/** [T, T] additive mask: a token attends to itself and those before it, the window − 1 nearest if there is one. */
export function causalMask(length: number, window: number | null = null): Float32Array {
  const mask = new Float32Array(length * length);
  for (let row = 0; row < length; row++) {
    if (window !== null) mask.fill(MASKED, row * length, row * length + Math.max(0, row - window + 1));
    mask.fill(MASKED, row * length + row + 1, (row + 1) * length);
  }
  return mask;
}

/** Tables and masks of whole sequences, packed in rows. */
export function packedPositions(model: Source, rows: Rows): Feeds {
  const { config } = model;
  const { tree, B, Q } = rows;
  const feeds: Feeds = {};
  model.rotary(tree.depth.reduce((most, depth) => Math.max(most, depth + 1), 0)).forEach(({ cos, sin }, kind) => {
    const width = config.ropes[kind]!.frequencies.length;
    for (const [name, table] of [
      ['cos', cos],
      ['sin', sin],
    ] as const) {
      const placed = new Float32Array(B * Q * width);
      for (const [n, depth] of tree.depth.entries()) {
        placed.set(table.subarray(depth * width, (depth + 1) * width), n * width);
      }
      feeds[kindInput(name, kind)] = placed;
    }
  });
  config.windows.forEach((window, kind) => {
    feeds[kindInput('mask', kind)] = rowMask(rows, window);
  });
  return feeds;
}

/**
 * Tables and masks of the cached form.
 * @param lengths tokens cached so far, for each row
 * @param cacheLength L, the length rows are stored with
 * @param chunk C, new tokens a row
 */
export function cachedPositions(model: Source, lengths: readonly number[], cacheLength: number, chunk: number): Feeds {
  const { config } = model;
  const feeds: Feeds = {};
  const tables = model.rotary(Math.min(config.maxPositions, Math.max(...lengths) + chunk));
  tables.forEach(({ cos, sin }, kind) => {
    const width = config.ropes[kind]!.frequencies.length;
    feeds[kindInput('cos', kind)] = rowsAt(cos, lengths, chunk, width);
    feeds[kindInput('sin', kind)] = rowsAt(sin, lengths, chunk, width);
  });
  config.windows.forEach((window, kind) => {
    feeds[kindInput('past_mask', kind)] = pastMask(lengths, cacheLength, chunk, window);
    feeds[kindInput('chunk_mask', kind)] = causalMask(chunk, window);
  });
  return feeds;
}

/** [B, C, width]: the rows of a table at each row's next C positions. */
function rowsAt(table: Float32Array, lengths: readonly number[], chunk: number, width: number): Float32Array {
  const rows = new Float32Array(lengths.length * chunk * width);
  lengths.forEach((length, i) => {
    // Places beyond a row's own tokens may lie past the table; what is computed there is dropped.
    rows.set(table.subarray(length * width, (length + chunk) * width), i * chunk * width);
  });
  return rows;
}

/** [B, L], or [B, C, L] for a window, which leaves each place of the chunk other cached tokens. */
function pastMask(lengths: readonly number[], L: number, chunk: number, window: number | null): Float32Array {
  const queries = window === null ? 1 : chunk;
  const mask = new Float32Array(lengths.length * queries * L);
  lengths.forEach((length, i) => {
    for (let c = 0; c < queries; c++) {
      const start = (i * queries + c) * L;
      if (window !== null) mask.fill(MASKED, start, start + Math.min(L, Math.max(0, length + c - window + 1)));
      mask.fill(MASKED, start + length, start + L);
    }
  });
  return mask;
}
