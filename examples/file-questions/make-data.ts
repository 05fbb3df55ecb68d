/**
 * Writes files/, train.jsonl and test.jsonl:
 *
 *   npx tsx examples/file-questions/make-data.ts
 *
 * A file for each of 400 boxes of a store: `12-34.txt` says how many parts lie in box 34 of shelf 12. The numbers are drawn
 * at random, so that only who reads the file can know. 300 boxes are asked about in training, the others in the test alone.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

const random = xoroshiro128plus(0);
const number = (low: number, high: number) => uniformInt(random, low, high);
const boxes = new Map<string, string>();
while (boxes.size < 400) boxes.set(`${number(10, 99)}-${number(10, 99)}`, `${number(100, 999)}`);

const folder = join(import.meta.dirname, 'files');
mkdirSync(folder, { recursive: true });
for (const [box, parts] of boxes) writeFileSync(join(folder, `${box}.txt`), `${parts}\n`);

function write(name: string, tasks: readonly (readonly [string, string])[]): void {
  const rows = tasks.map(([prompt, label]) => `${JSON.stringify({ prompt, label })}\n`);
  writeFileSync(join(import.meta.dirname, name), rows.join(''));
  console.log(`${name}: ${rows.length} boxes`);
}
write('train.jsonl', [...boxes].slice(0, 300));
write('test.jsonl', [...boxes].slice(300));
