import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { writeCheckpoint } from '../../src/nn/checkpoint/directory.ts';
import { decoderConfig } from '../../src/nn/models/families.ts';
import { initialise, parameterLayout } from '../../src/nn/models/parameters.ts';
import { root } from './process.ts';

/** A directory for the tests of one file; removed after them. */
export function workplace(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tokenloop-tests-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The configuration of a decoder that computes a training step in milliseconds: 3 000 parameters, 64 positions. */
export const TINY_CONFIG = {
  ...(JSON.parse(readFileSync(join(root, 'examples/char-model/init/config.json'), 'utf8')) as Record<string, unknown>),
  hidden_size: 16,
  intermediate_size: 32,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 8,
};

/** Writes a policy with fresh weights that reads the characters of the examples. */
export async function writeTinyModel(directory: string, change: (weights: Float32Array) => void = () => undefined) {
  const config = decoderConfig(TINY_CONFIG);
  const layout = parameterLayout(config);
  const weights = initialise(config, layout, 1);
  change(weights);
  const carry = join(root, 'examples/char-model/init');
  await writeCheckpoint(directory, { rawConfig: TINY_CONFIG, layout, weights, carry });
}

/** A copy of a directory, changed. */
export function copyOf(source: string, target: string, change: (directory: string) => void): void {
  cpSync(source, target, { recursive: true });
  change(target);
}

/** Writes objects as JSONL. */
export function writeRows(path: string, rows: readonly unknown[]): void {
  writeFileSync(path, rows.map(row => `${JSON.stringify(row)}\n`).join(''));
}

/** Writes an option file: dotted names to values. */
export function writeOptions(path: string, values: Readonly<Record<string, unknown>>): void {
  const lines = Object.entries(values).map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, lines.join(''));
}

/** The records of a JSONL file. */
export function readRecords(path: string): Record<string, unknown>[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  if (lines.pop() !== '') throw new Error(`${path} does not end with a whole line`);
  return lines.map(line => JSON.parse(line) as Record<string, unknown>);
}

/** Metrics of a run without those that measure time. */
export function lasting(metrics: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith('timing/')));
}

/** What `metrics.jsonl` of a run says, without what measures time. */
export function lastingMetrics(run: string): Record<string, unknown>[] {
  return readRecords(join(run, 'metrics.jsonl')).map(lasting);
}

/** Files and directories below a directory, sorted. */
export function below(directory: string): string[] {
  return readdirSync(directory, { recursive: true }).map(String).sort();
}
