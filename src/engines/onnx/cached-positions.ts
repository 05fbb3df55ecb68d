import { MASKED } from '../../nn/models/attention.ts';
import { kindInput } from '../../nn/models/layers.ts';
import type { Model } from './model.ts';
import { causalMask } from './positions.ts';

/**
 * Positions, tables and masks of the cached form, and S, the rows of the tables.
 * @param lengths tokens cached so far, for each row
 * @param cacheLength L, the length rows are stored with
 * @param chunk C, new tokens a row
 */
export function cachedPositions(
  model: Pick<Model, 'config' | 'rotary'>,
  lengths: readonly number[],
  cacheLength: number,
  chunk: number,
): { readonly feeds: Record<string, Float32Array | BigInt64Array>; readonly S: number } {
  const { config } = model;
  const needed = Math.min(config.maxPositions, Math.max(...lengths) + chunk);
  const tables = model.rotary(needed);
  const S = tables.length === 0 ? 1 : tables[0]!.cos.length / config.ropes[0]!.frequencies.length;
  const positions = new BigInt64Array(lengths.length * chunk);
  lengths.forEach((length, i) => {
    // Places beyond a row's own tokens may lie past the tables; what is computed there is dropped.
    for (let c = 0; c < chunk; c++) positions[i * chunk + c] = BigInt(Math.min(length + c, needed - 1));
  });
  const feeds: Record<string, Float32Array | BigInt64Array> = { positions };
  tables.forEach(({ cos, sin }, kind) => {
    feeds[kindInput('cos', kind)] = cos;
    feeds[kindInput('sin', kind)] = sin;
  });
  config.windows.forEach((window, kind) => {
    feeds[kindInput('past_mask', kind)] = pastMask(lengths, cacheLength, chunk, window);
    feeds[kindInput('chunk_mask', kind)] = causalMask(chunk, window);
  });
  return { feeds, S };
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
