/**
 * Draws a metric of one or several runs of an experiment, with their mean, as an SVG file:
 *
 *   npx tsx tools/plot/curve.ts --metric eval/test/pass1 --title 'Guessing game' --label 'games won' \
 *     --line 'binary search=0.875' --out curve.svg runs/a runs/b runs/c
 *
 * Arguments are run directories. `--line` may be given several times.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chartSvg, type Point } from './chart.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    metric: { type: 'string', default: 'eval/test/pass1' },
    title: { type: 'string', default: '' },
    label: { type: 'string' },
    line: { type: 'string', multiple: true, default: [] },
    out: { type: 'string', default: 'curve.svg' },
  },
});
const { metric, title, label = metric, line, out } = values;
if (positionals.length === 0) throw new Error('give one or more run directories, each with a metrics.jsonl');

/** The places at which a run has the metric. */
function points(directory: string): Point[] {
  const path = join(directory, 'metrics.jsonl');
  const records = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map(text => JSON.parse(text) as Record<string, number>);
  const found = records.flatMap(record => (metric in record ? [{ x: record.step!, y: record[metric]! }] : []));
  if (found.length === 0) throw new Error(`${path} has no metric ${metric}; name one of its keys with --metric`);
  return found;
}

const references = line.map(one => {
  const at = one.lastIndexOf('=');
  const y = Number(one.slice(at + 1));
  if (at < 1 || Number.isNaN(y)) throw new Error(`--line ${one}: expected label=number`);
  return { label: one.slice(0, at), y };
});
writeFileSync(out, chartSvg({ title, xLabel: 'steps', yLabel: label, runs: positionals.map(points), references }));
console.log(`${out}: ${positionals.length} runs`);
