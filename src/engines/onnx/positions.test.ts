import { expect, it } from 'vitest';
import { MASKED } from '../../nn/models/attention.ts';
import type { DecoderConfig } from '../../nn/models/families.ts';
import { rotaryTables } from '../../nn/models/rope.ts';
import { causalMask, packedPositions } from './positions.ts';
import { cut } from './rows.ts';
import { growTree } from './tree.ts';

const ropes = [
  { frequencies: [1, 0.5], scale: 1 },
  { frequencies: [0.25], scale: 2 },
];
const config = { windows: [null, 2], ropes, maxPositions: 8 } as unknown as DecoderConfig;
const model = { config, rotary: (length: number) => ropes.map(rope => rotaryTables(rope, length + 3)) };

/** Rows of a mask as text: `x` where attention is open. */
function rows(mask: Float32Array, width: number): string[] {
  expect(mask.every(value => value === 0 || value === Math.fround(MASKED))).toBe(true);
  const text = [...mask].map(value => (value === 0 ? 'x' : '.')).join('');
  return text.match(new RegExp(`.{${width}}`, 'g')) ?? [];
}

it('masks the future, and what lies before the window', () => {
  expect(rows(causalMask(3), 3)).toEqual(['x..', 'xx.', 'xxx']);
  expect(rows(causalMask(4, 2), 4)).toEqual(['x...', 'xx..', '.xx.', '..xx']);
  expect(rows(causalMask(3, 1), 3)).toEqual(['x..', '.x.', '..x']);
});

it('gives each kind of layer its mask and its tables', () => {
  const feeds = packedPositions(model, cut(growTree([Int32Array.of(5, 6, 7)], false), 3));
  // A row for each token: in the first class the one with one key, in the second those with more.
  expect(rows(feeds.mask0!, 1)).toEqual(['x']);
  expect(rows(feeds.mask1!, 3)).toEqual(['xx.', 'xxx']);
  expect(rows(feeds['mask0.1']!, 1)).toEqual(['x']);
  expect(rows(feeds['mask1.1']!, 3)).toEqual(['xx.', '.xx']);
  expect(feeds.cos).toHaveLength(6);
  expect([...feeds['sin.1']!]).toEqual([0, 0.25, 0.5].map(angle => Math.fround(2 * Math.sin(angle))));
});
