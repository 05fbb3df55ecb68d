import { expect, it } from 'vitest';
import { MASKED } from '../../nn/models/attention.ts';
import type { DecoderConfig } from '../../nn/models/families.ts';
import { rotaryTables } from '../../nn/models/rope.ts';
import { cachedPositions } from './cached-positions.ts';
import { causalMask } from './positions.ts';

const ropes = [
  { frequencies: [1, 0.5], scale: 1 },
  { frequencies: [0.25], scale: 2 },
];
const config = { windows: [null, 2], ropes, maxPositions: 8 } as unknown as DecoderConfig;
const model = { config, rotary: (length: number) => ropes.map(rope => rotaryTables(rope, length + 3)) };

/** Rows of a mask as text: `x` where attention is open. */
function rows(mask: Float32Array | BigInt64Array, width: number): string[] {
  expect([...mask].every(value => value === 0 || value === Math.fround(MASKED))).toBe(true);
  const text = [...mask].map(value => (value === 0 ? 'x' : '.')).join('');
  return text.match(new RegExp(`.{${width}}`, 'g')) ?? [];
}

it('opens to each place of a chunk the cached tokens its window reaches', () => {
  // Two rows with 3 and 1 tokens in a cache of 4 places, two new tokens each.
  const { feeds, S } = cachedPositions(model, [3, 1], 4, 2);
  expect(rows(feeds.past_mask!, 4)).toEqual(['xxx.', 'x...']);
  expect(rows(feeds.chunk_mask!, 2)).toEqual(['x.', 'xx']);
  expect(rows(feeds['past_mask.1']!, 4)).toEqual(['..x.', '....', 'x...', '....']);
  expect(rows(feeds['chunk_mask.1']!, 2)).toEqual(['x.', 'xx']);
  expect([...feeds.positions!].map(Number)).toEqual([3, 4, 1, 2]);
  expect(feeds.cos).toHaveLength(2 * S);
  const angles = Array.from({ length: S }, (_, position) => [position, 0.5 * position]).flat();
  expect([...feeds.cos!]).toEqual(angles.map(angle => Math.fround(Math.cos(angle))));
});

it('agrees between the two forms, wherever a sequence is cut', () => {
  for (const window of [1, 2, 3, 5]) {
    const whole = rows(causalMask(7, window), 7);
    const single = { ...model, config: { ...config, windows: [window] } };
    for (let cut = 1; cut < 7; cut++) {
      const { past_mask: past, chunk_mask: chunk } = cachedPositions(single, [cut], cut, 7 - cut).feeds;
      const joined = rows(chunk!, 7 - cut).map((row, c) => rows(past!, cut)[c]! + row);
      expect(joined).toEqual(whole.slice(cut));
    }
  }
});
