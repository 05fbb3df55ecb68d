/**
 * Collects the held-out results of finished runs into results.json, and draws guess.svg and puzzle.svg from that file:
 *
 *   npx tsx examples/text-games/make-curves.ts runs
 *
 * takes them from runs/text-games-guess-1, -2 …, runs/text-games-gigpo-1 … and runs/text-games-grpo-1 …, the number being
 * the seed; without an argument the charts are drawn anew from results.json.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Results, resultCharts } from './curves.ts';

const [directory] = process.argv.slice(2);
const file = join(import.meta.dirname, 'results.json');

/** The share of held-out games that are won, by step, of the seeds from 1. */
function collected(runs: string, name: string): { steps: number[]; seeds: number[][] } {
  const file = (seed: number) => join(runs, `text-games-${name}-${seed}`, 'metrics.jsonl');
  const seeds: Record<string, number>[][] = [];
  for (let seed = 1; existsSync(file(seed)); seed++) {
    const lines = readFileSync(file(seed), 'utf8').trimEnd().split('\n');
    const records = lines.map(line => JSON.parse(line) as Record<string, number>);
    seeds.push(records.filter(record => 'eval/test/pass1' in record));
  }
  if (seeds.length === 0) throw new Error(`there is no run ${file(1)}`);
  return {
    steps: seeds[0]!.map(record => record.step!),
    seeds: seeds.map(records => records.map(record => Number(record['eval/test/pass1']!.toFixed(4)))),
  };
}

if (directory !== undefined) {
  const before = JSON.parse(readFileSync(file, 'utf8')) as Results;
  const [guess, gigpo, grpo] = ['guess', 'gigpo', 'grpo'].map(name => collected(directory, name));
  const results = { ...before, guess, gigpo, grpo };
  // A list of numbers in one line.
  const text = JSON.stringify(results, null, 1).replace(/\[[\d\s.,]*\]/g, list => list.replace(/\s+/g, ' '));
  writeFileSync(file, `${text}\n`);
}
const charts = resultCharts(JSON.parse(readFileSync(file, 'utf8')) as Results);
for (const [name, svg] of Object.entries(charts)) writeFileSync(join(import.meta.dirname, name), svg);
