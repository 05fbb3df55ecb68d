import { MASKED } from '../../nn/models/attention.ts';
import { kindInput } from '../../nn/models/layers.ts';
import { maskInput } from '../../nn/models/row-attention.ts';
import type { Model } from './model.ts';
import { packedIndex, type Rows, rowMasks } from './rows.ts';

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
  const { depth } = rows.tree;
  const index = packedIndex(rows);
  const feeds: Feeds = {};
  model.rotary(depth.reduce((most, each) => Math.max(most, each + 1), 0)).forEach(({ cos, sin }, kind) => {
    const width = config.ropes[kind]!.frequencies.length;
    for (const [name, table] of [
      ['cos', cos],
      ['sin', sin],
    ] as const) {
      const placed = new Float32Array(rows.rank.length * rows.Q * width);
      for (const [n, at] of index.entries()) {
        placed.set(table.subarray(depth[n]! * width, (depth[n]! + 1) * width), at * width);
      }
      feeds[kindInput(name, kind)] = placed;
    }
  });
  config.windows.forEach((window, kind) => {
    for (const [c, mask] of rowMasks(rows, window).entries()) feeds[kindInput(maskInput(c), kind)] = mask;
  });
  return feeds;
}
