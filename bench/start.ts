import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Model } from '../src/engines/onnx/model.ts';
import { writeCheckpoint } from '../src/nn/checkpoint/directory.ts';
import { type Cell, Report } from './harness.ts';
import { MODELS, withConfig } from './models.ts';

/** Runs of each case; the one with the shortest time to the first token counts. */
const RUNS = 3;

/** From nothing to the first token, each time in a new process, and where the time goes. */
export async function run(names: string[]): Promise<void> {
  const report = new Report('start');
  const script = fileURLToPath(new URL('start-case.ts', import.meta.url));
  const rows: Cell[][] = [];
  let columns: string[] = [];
  for (const name of names.length > 0 ? names : ['0.75M', '25M', '135M']) {
    const shape = MODELS[name];
    if (shape === undefined) throw new Error(`no model '${name}'; there are ${Object.keys(MODELS).join(', ')}`);
    const root = mkdtempSync(join(tmpdir(), 'tokenloop-start-'));
    try {
      await withConfig(shape, async config => {
        const { rawConfig, layout, weights } = new Model(config, 1);
        for (const dtype of ['F32', 'BF16'] as const) {
          await writeCheckpoint(join(root, dtype), { rawConfig, layout, weights, carry: config, dtype });
        }
      });
      for (const dtype of ['F32', 'BF16']) {
        const runs = Array.from({ length: RUNS }, () => once(script, join(root, dtype)));
        const best = runs.reduce((a, b) => (b.total! < a.total! ? b : a));
        columns = Object.keys(best);
        rows.push([`${name} ${dtype}`, ...Object.values(best).map(ms => Math.round(ms))]);
      }
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  }
  report.add({ title: 'To the first token after a prompt of 64, ms', columns: ['model', ...columns], rows });
  if (names.length === 0) report.save();
}

function once(script: string, directory: string): Record<string, number> {
  const output = execFileSync(process.execPath, ['--import', 'tsx', script, directory], { encoding: 'utf8' });
  return JSON.parse(output) as Record<string, number>;
}
