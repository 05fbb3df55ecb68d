/**
 * Writes demonstrations.jsonl for the warm start: one conversation for each task of train.jsonl, in its order.
 *
 *   npx tsx examples/calculator-agent/make-demonstrations.ts [--tool 0.3] [--seed 0]
 *
 * A share `--tool` of them calls the calculator and copies its result; the others answer at once, which a small model
 * cannot learn to do well. So a model that imitates them answers many tasks wrongly, and there is something to learn.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { Message } from '../../src/episode/task.ts';

const { values } = parseArgs({
  options: { tool: { type: 'string', default: '0.3' }, seed: { type: 'string', default: '0' } },
});
const tool = Number(values.tool);
const seed = Number(values.seed);
if (!(tool >= 0 && tool <= 1)) throw new Error(`--tool is ${values.tool}; it is a share between 0 and 1`);
if (!Number.isInteger(seed)) throw new Error(`--seed is ${values.seed}; it is a whole number`);

const random = xoroshiro128plus(seed);
let calls = 0;
const rows = readFileSync(join(import.meta.dirname, 'train.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => {
    const { prompt, label } = JSON.parse(line) as { prompt: string; label: string };
    const messages: Message[] = [{ role: 'user', content: prompt }];
    if (uniformFloat64(random) < tool) {
      calls += 1;
      messages.push({ role: 'assistant', content: `c${prompt}` }, { role: 'tool', content: label });
    }
    messages.push({ role: 'assistant', content: `a${label}` });
    return `${JSON.stringify({ messages })}\n`;
  });
writeFileSync(join(import.meta.dirname, 'demonstrations.jsonl'), rows.join(''));
console.log(`${rows.length} demonstrations, ${calls} of them with a call`);
