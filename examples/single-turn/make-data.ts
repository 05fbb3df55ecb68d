/**
 * Writes train.jsonl and test.jsonl of mental arithmetic: every sum `a+b` and every difference `a-b` >= 0 of whole
 * numbers from 1 to 20, 100 of them (drawn with a fixed seed) held out.
 *
 *   npx tsx examples/single-turn/make-data.ts
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

const LARGEST = 20;
const HELD_OUT = 100;

const rows: { prompt: string; label: string }[] = [];
for (let a = 1; a <= LARGEST; a++) {
  for (let b = 1; b <= LARGEST; b++) {
    rows.push({ prompt: `${a}+${b}`, label: `${a + b}` });
    if (a >= b) rows.push({ prompt: `${a}-${b}`, label: `${a - b}` });
  }
}
const random = xoroshiro128plus(0);
const test = Array.from({ length: HELD_OUT }, () => rows.splice(uniformInt(random, 0, rows.length - 1), 1)[0]);
for (const [name, part] of Object.entries({ train: rows, test })) {
  writeFileSync(join(import.meta.dirname, `${name}.jsonl`), part.map(row => `${JSON.stringify(row)}\n`).join(''));
  console.log(`${name}.jsonl: ${part.length} rows`);
}
