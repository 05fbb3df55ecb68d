import { expect, it } from 'vitest';
import { z } from 'zod';
import { explain, preview } from './explain.ts';

const schema = z.object({ reward: z.number(), list: z.array(z.object({ n: z.int().min(1) })) });

it.each<[unknown, string]>([
  [{ reward: Number.NaN, list: [] }, 'reward: expected number, got NaN'],
  [{ list: [{ n: 1 }, { n: 0 }] }, 'reward: expected number, got nothing; list[1].n: Too small: .*>=1, got 0'],
  [null, 'expected object, got null'],
])('explains %j on one line', (value, expected) => {
  expect(explain(schema.safeParse(value).error!, value)).toMatch(new RegExp(`^${expected.replace(/[[\]]/g, '\\$&')}$`));
});

it('previews any value shortly', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  expect([-0, undefined, cyclic, 1n, () => 1].map(preview)).toEqual([
    '-0',
    'nothing',
    '[object Object]',
    '1',
    'a function',
  ]);
  expect(preview('x'.repeat(100))).toHaveLength(60);
});
