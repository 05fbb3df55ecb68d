import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { chart, type SeedResult } from '../examples/rlhf/results.ts';
import { likingOf } from '../examples/rlhf/true-preference.js';
import { root } from './support/process.ts';

/** examples/rlhf: its data is what the script says, and its chart shows its results. */

const example = join(root, 'examples/rlhf');
const rows = (name: string) =>
  readFileSync(join(example, `${name}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, string>);

it.each([
  ['4708', '0478', 1],
  ['4708', '8740', 0],
  ['4708', '0487', 5 / 6],
  ['4708', '0447', 0],
  ['4708', '04789', 0],
])('readers who asked for %s like %s by %d', (digits, answer, liking) => {
  expect(likingOf(answer, digits)).toBe(liking);
});

it.each(['pairs', 'held-out-pairs'])('one label in ten is wrong: %s', name => {
  const pairs = rows(name);
  const right = pairs.map(({ prompt, chosen, rejected }) => {
    const [one, other] = [chosen, rejected].map(answer => likingOf(answer!, prompt!.slice(1)));
    expect(one).not.toBe(other);
    return one! > other! ? 1 : 0;
  });
  const share = right.reduce((sum: number, one) => sum + one, 0) / pairs.length;
  // Four standard errors of a share of 0.9.
  expect(Math.abs(share - 0.9)).toBeLessThan(4 * Math.sqrt(0.09 / pairs.length));
});

it('holds out prompts that occur nowhere else', () => {
  const prompts = (name: string) => rows(name).map(({ prompt }) => prompt!);
  const held = new Set(['test', 'held-out-pairs'].flatMap(prompts));
  const trained = ['demonstrations', 'pairs', 'tasks'].flatMap(prompts);
  expect(trained.filter(prompt => held.has(prompt))).toEqual([]);
});

it('shows its results', () => {
  const results = JSON.parse(readFileSync(join(example, 'results.json'), 'utf8')) as SeedResult[];
  expect(results.map(({ seed }) => seed)).toEqual([1, 2, 3]);
  for (const { sft, ppo } of results) expect(ppo.liking).toBeGreaterThan(sft.liking);
  expect(readFileSync(join(example, 'curve.svg'), 'utf8')).toBe(chart(results));
});
