import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/nn/checkpoint/directory.ts';
import { estimateMemory } from '../src/nn/checkpoint/memory.ts';
import { Report, type Table } from './harness.ts';
import type { MemoryCase, MemoryResult } from './memory-case.ts';
import { MODELS, type ModelShape, withConfig } from './models.ts';

/**
 * Peak memory of learning, each case in a process of its own. Times are of one forward and backward pass and for
 * comparison only; memory does not depend on what else runs.
 */

const WHOLE = 2 ** 40;
const SECTIONS: Readonly<Record<string, () => Promise<Table>>> = { vocabulary, activations, parts, optimizers };

export async function run(names: string[]): Promise<void> {
  const report = new Report('memory');
  for (const name of names.length > 0 ? names : Object.keys(SECTIONS)) {
    const section = SECTIONS[name];
    if (section === undefined) throw new Error(`no part '${name}'; there are ${Object.keys(SECTIONS).join(', ')}`);
    report.add(await section());
  }
  if (names.length === 0) report.save();
}

export function measured(
  shape: ModelShape,
  rows: number,
  length: number,
  rest: Partial<MemoryCase> = {},
): MemoryResult {
  const entry = fileURLToPath(new URL('memory-case.ts', import.meta.url));
  const json = JSON.stringify({ shape, rows, length, ...rest } satisfies MemoryCase);
  return JSON.parse(execFileSync(process.execPath, ['--import', 'tsx', entry, json], { encoding: 'utf8' }));
}

/** Two layers under the vocabulary of Qwen 2.5 and 3. */
const WIDE: ModelShape = {
  hidden: 256,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  intermediate: 704,
  vocabulary: 151936,
  batch: [1, 256],
};

async function vocabulary(): Promise<Table> {
  const rows = [1, 4, 16].map(count => {
    const [length, tokens] = [128, 128 * count];
    const learner = { maxTokens: tokens };
    const whole = measured(WIDE, count, length, { learner: { ...learner, logitsBytes: WHOLE } });
    const blocks = measured(WIDE, count, length, { learner });
    return [tokens, whole.peak, blocks.peak, whole.ms, blocks.ms, blocks.ms / whole.ms];
  });
  return {
    title: `A vocabulary of ${WIDE.vocabulary}: all logits at once, and blocks of 64 MB`,
    columns: ['tokens predicted', 'whole, MB', 'blocks, MB', 'whole, ms', 'blocks, ms', 'time'],
    rows,
  };
}

async function activations(): Promise<Table> {
  const cases = [
    ['25M', 16, 64],
    ['25M', 8, 512],
    ['135M', 4, 128],
    ['135M', 8, 256],
  ] as const;
  const rows = cases.map(([name, count, length]) => {
    const kept = measured(MODELS[name]!, count, length);
    const anew = measured(MODELS[name]!, count, length, { learner: { recompute: true } });
    return [name, `${count} × ${length}`, kept.peak, anew.peak, kept.ms, anew.ms, anew.ms / kept.ms];
  });
  return {
    title: 'Activations kept, and computed anew (gradient_checkpointing_enable)',
    columns: ['model', 'batch', 'kept, MB', 'anew, MB', 'kept, ms', 'anew, ms', 'time'],
    rows,
  };
}

/** What holds the memory, as it is estimated before a model is loaded, and what a process really needed. */
async function parts(): Promise<Table> {
  const shape = MODELS['135M']!;
  const lora = { rank: 16, alpha: 16, targetModules: 'all-linear' } as const;
  const names = ['weights', 'adapter', 'gradients', 'optimizer', 'activations', 'logits'];
  const rows: Table['rows'][number][] = [];
  for (const [what, rank, recompute] of [
    ['all weights', undefined, false],
    ['all weights, checkpointing', undefined, true],
    ['LoRA, rank 16', 16, false],
    ['LoRA, checkpointing', 16, true],
  ] as const) {
    const [count, length] = [4, 256];
    const estimate = await withConfig(shape, async directory => {
      const use = { training: true, maxTokens: count * length, recompute, lora: rank === undefined ? undefined : lora };
      return estimateMemory(readConfig(directory).config, use);
    });
    const total = Object.values(estimate).reduce((sum, bytes) => sum + bytes, 0);
    const { peak } = measured(shape, count, length, { ...(rank && { rank }), learner: { recompute } });
    const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20);
    rows.push([what, ...names.map(name => megabytes(estimate[name] ?? 0)), megabytes(total), Math.round(peak)]);
  }
  return {
    title: 'SmolLM2-135M, 4 × 256 tokens: MB, estimated before loading; and the peak of a process, of which Node is 90',
    columns: ['trained', ...names, 'estimate', 'measured'],
    rows,
  };
}

async function optimizers(): Promise<Table> {
  const muon = { lrRatio: 1, momentum: 0.95, nesterov: true, steps: 5 };
  const rows = ['0.75M', '25M'].flatMap(name => {
    const shape = MODELS[name]!;
    return [{}, { muon }].map(learner => {
      const { peak, updateMs, parameters } = measured(shape, 1, 16, { learner });
      return [name, 'muon' in learner ? 'Muon' : 'AdamW', updateMs, (1e6 * updateMs) / parameters, peak];
    });
  });
  return {
    title: 'One update, clipping included',
    columns: ['model', 'optimizer', 'ms', 'ms a million weights', 'peak, MB'],
    rows,
  };
}
