/**
 * Writes train.jsonl, test.jsonl and demonstrations.jsonl of the guessing game:
 *
 *   npx tsx examples/guess-number/make-data.ts
 *
 * Every task is the same game (`1-8`); the environment hides a number, another one for each task and epoch.
 * The demonstrations play uniformly random guesses, so that a warm-started model knows how to play but not how to win:
 * it wins 0.33 of its games, binary search 0.875.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { Message } from '../../src/episode/task.ts';

const LOW = 1;
const HIGH = 8;
const GUESSES = 3;
const PROMPT = `${LOW}-${HIGH}`;

const random = xoroshiro128plus(0);
const draw = () => uniformInt(random, LOW, HIGH);

function demonstration(): { messages: Message[] } {
  const secret = draw();
  const messages: Message[] = [{ role: 'user', content: PROMPT }];
  for (let turn = 1; ; turn++) {
    const guess = draw();
    messages.push({ role: 'assistant', content: `${guess}` });
    if (guess === secret || turn === GUESSES) return { messages };
    messages.push({ role: 'user', content: secret < guess ? '<' : '>' });
  }
}

function write(name: string, count: number, row: () => unknown): void {
  const rows = Array.from({ length: count }, () => `${JSON.stringify(row())}\n`);
  writeFileSync(join(import.meta.dirname, name), rows.join(''));
  console.log(`${name}: ${count} rows`);
}

write('train.jsonl', 512, () => ({ prompt: PROMPT, label: '' }));
write('test.jsonl', 1024, () => ({ prompt: PROMPT, label: '' }));
write('demonstrations.jsonl', 1000, demonstration);
