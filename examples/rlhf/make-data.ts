/**
 * Writes the data of the example:
 *
 *   npx tsx examples/rlhf/make-data.ts
 *
 * A prompt is `<` and four different digits, an answer these digits in some order. demonstrations.jsonl answers in a
 * random order. pairs.jsonl and held-out-pairs.jsonl have two answers each, of which readers chose one: the one that they
 * like more (true-preference.js), but one time in ten the other. One answer in three has a wrong digit. tasks.jsonl
 * and test.jsonl are prompts; those of test.jsonl and held-out-pairs.jsonl occur nowhere else.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { likingOf } from './true-preference.js';

const LENGTH = 4;
const TASKS = 1200;
const TEST = 200;
const DEMONSTRATIONS = 3000;
const PAIRS = 6000;
const HELD_OUT_PAIRS = 400;
const WRONG_LABELS = 0.1;
const WRONG_DIGITS = 1 / 3;

const random = xoroshiro128plus(0);
const pick = (from: number) => uniformInt(random, 0, from - 1);

function shuffled(text: string): string {
  const left = [...text];
  return Array.from(text, () => left.splice(pick(left.length), 1)[0]!).join('');
}

const all = new Set<string>();
while (all.size < TASKS + TEST) all.add(shuffled('0123456789').slice(0, LENGTH));
const prompts = [...all];
const [trained, held] = [prompts.slice(0, TASKS), prompts.slice(TASKS)];

/** As somebody writes who is careless about the order, and at times about the digits. */
function answer(digits: string): string {
  const order = shuffled(digits);
  if (uniformFloat64(random) >= WRONG_DIGITS) return order;
  const place = pick(LENGTH);
  return order.slice(0, place) + String(pick(10)) + order.slice(place + 1);
}

function pair(digits: string) {
  for (;;) {
    const [one, other] = [answer(digits), answer(digits)];
    const difference = likingOf(one, digits) - likingOf(other, digits);
    if (difference === 0) continue;
    const better = difference > 0 === uniformFloat64(random) >= WRONG_LABELS;
    return { prompt: `<${digits}`, chosen: better ? one : other, rejected: better ? other : one };
  }
}

const some = (from: readonly string[], count: number) => Array.from({ length: count }, () => from[pick(from.length)]!);
const task = (digits: string) => ({ prompt: `<${digits}`, digits });
const files = {
  demonstrations: some(trained, DEMONSTRATIONS).map(digits => ({ prompt: `<${digits}`, answer: shuffled(digits) })),
  pairs: some(trained, PAIRS).map(pair),
  'held-out-pairs': some(held, HELD_OUT_PAIRS).map(pair),
  tasks: trained.map(task),
  test: held.map(task),
};
for (const [name, rows] of Object.entries(files)) {
  writeFileSync(join(import.meta.dirname, `${name}.jsonl`), rows.map(row => `${JSON.stringify(row)}\n`).join(''));
  console.log(`${name}.jsonl: ${rows.length} rows`);
}
