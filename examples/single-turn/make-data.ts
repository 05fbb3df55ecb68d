/**
 * Writes train.jsonl, test.jsonl and demonstrations.jsonl of mental arithmetic:
 *
 *   npx tsx examples/single-turn/make-data.ts
 *
 * Tasks are every sum `a+b` and every difference `a-b` >= 0 of whole numbers from 1 to 20, 100 of them (drawn with a
 * fixed seed) held out. The demonstrations answer each task of train.jsonl eight times, like somebody who reckons
 * carelessly: half of the answers are right, the others off by one, two or three.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { Message } from '../../src/episode/task.ts';

const LARGEST = 20;
const HELD_OUT = 100;
const DEMONSTRATIONS = 8;
const LARGEST_ERROR = 3;

interface Row {
  readonly prompt: string;
  readonly label: string;
}
const train: Row[] = [];
for (let a = 1; a <= LARGEST; a++) {
  for (let b = 1; b <= LARGEST; b++) {
    train.push({ prompt: `${a}+${b}`, label: `${a + b}` });
    if (a >= b) train.push({ prompt: `${a}-${b}`, label: `${a - b}` });
  }
}
const random = xoroshiro128plus(0);
const test = Array.from({ length: HELD_OUT }, () => train.splice(uniformInt(random, 0, train.length - 1), 1)[0]!);

function demonstration({ prompt, label }: Row): { messages: Message[] } {
  const sign = 2 * uniformInt(random, 0, 1) - 1;
  const error = uniformInt(random, 0, 1) * sign * uniformInt(random, 1, LARGEST_ERROR);
  const answer = Math.max(0, Number(label) + error);
  return {
    messages: [
      { role: 'user', content: prompt },
      { role: 'assistant', content: `a${answer}` },
    ],
  };
}

const demonstrations = train.flatMap(row => Array.from({ length: DEMONSTRATIONS }, () => demonstration(row)));
for (const [name, rows] of Object.entries({ train, test, demonstrations })) {
  writeFileSync(join(import.meta.dirname, `${name}.jsonl`), rows.map(row => `${JSON.stringify(row)}\n`).join(''));
  console.log(`${name}.jsonl: ${rows.length} rows`);
}
